"""The project `coevolve init` writes; only the other files are copied."""
