"""What runs in the sandbox around a harness: sent there as source text, standard library only."""
