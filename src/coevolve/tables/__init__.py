"""Tables of harnesses: every harness of a finite space, evaluated on every task."""
