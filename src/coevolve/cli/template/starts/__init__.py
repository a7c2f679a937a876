"""Part of the project `coevolve init` writes."""
