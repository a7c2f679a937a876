"""`python -m coevolve`: the `coevolve` command."""

from coevolve.cli.main import app

if __name__ == "__main__":
    app(prog_name="coevolve")
