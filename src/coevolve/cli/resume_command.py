"""`coevolve resume`: continue a run that was stopped."""

from coevolve.cli.command_arguments import AsJson, Quiet, Run, find_run
from coevolve.cli.run_command import work


def resume(run: Run = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Resume a stopped run; its result is the same as without the stop."""
    work(find_run(run), quiet=quiet, as_json=as_json)
