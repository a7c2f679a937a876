"""What a benchmark says that candidates must not know by heart."""

from collections.abc import Callable, Mapping, Sequence

from coevolve.errors import ConfigError, nearest
from coevolve.search.leaks import Secret

Given = Secret | str | tuple[str, str]
"""What a task asks, or a pair of that and its answer."""
Secrets = Callable[[], Mapping[str, Given]]


def read_secrets(benchmark: object, name: str, tasks: Sequence[str]) -> dict[str, Secret]:
    """What a method of a benchmark, or an attribute, says of some tasks.

    Raises:
        ConfigError: It is no mapping from these tasks to secrets.
    """
    given = getattr(benchmark, name, None)
    try:
        found = given() if callable(given) else given
    except Exception as error:
        raise ConfigError(f"{name} failed: {type(error).__name__}: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(
            f"{name} must map tasks to what they ask, got a {type(found).__name__}; for example "
            '{"task-1": ("the question", "the answer")}.'
        )
    known = set(tasks)
    for task in found:
        if task not in known:
            where = "test task" if name.startswith("sealed") else "task"
            raise ConfigError(
                f"{name} has {task!r}, but there is no {where} of this id.{nearest(task, tasks)}"
            )
    return {task: _secret(value, f"{name}[{task!r}]") for task, value in found.items()}


def _secret(value: object, where: str) -> Secret:
    match value:
        case Secret():
            return value
        case str():
            return Secret(text=value)
        case [str() as text, str() as answer]:
            return Secret(text=text, answer=answer)
    raise ConfigError(
        f"{where} must be a question, or a pair of question and answer, both texts; it is a "
        f"{type(value).__name__}."
    )
