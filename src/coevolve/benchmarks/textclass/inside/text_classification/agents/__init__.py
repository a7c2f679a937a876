"""Home of candidates, and of the two systems that others may be derived from."""
