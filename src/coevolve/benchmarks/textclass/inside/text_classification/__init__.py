"""Stand-ins for the modules that a candidate written for Meta-Harness imports."""
