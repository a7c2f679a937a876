"""A proposer without a model: it combines the mechanisms of the built-in harnesses.

Each round proposes the next combination. A candidate is a folder with the files of the harnesses
that it combines, and a `harness.py` that joins their classes.
"""

from coevolve.benchmarks.harbor.agent_files import built_in

MIXES = (
    ("wait-after",),
    ("environment-snapshot", "wait-after"),
    ("terminus-kira",),
    ("environment-snapshot", "terminus-kira"),
    ("wait-after", "terminus-kira"),
    ("wait-after", "environment-snapshot", "terminus-kira"),
)
WHY = {
    "wait-after": "Trials run out of time while the agent sleeps after a command has ended.",
    "environment-snapshot": "The model plans with files and tools that are not there.",
    "terminus-kira": "Output is cut, and tasks are called complete without a check.",
}
HARNESS = '''"""Combines {names}."""

{imports}


class AgentHarness({classes}):
    """Looks up each method in the first of these classes that defines it."""

    @staticmethod
    def name() -> str:
        return "{name}"
'''


def propose(view, count):
    """Return the combinations that are next."""
    first = (view.round - 1) * count
    return [mixed(mix, view.parent) for mix in MIXES[first : first + count]]


def mixed(mix, parent):
    """Return a candidate that combines harnesses; of two, the first one's methods count."""
    sources = {name: (built_in()[name] / "harness.py").read_text() for name in mix}
    classes = {name: name.title().replace("-", "") for name in mix}
    modules = {name: name.replace("-", "_") + "_part" for name in mix}
    imports = [
        f"from {modules[name]} import AgentHarness as {classes[name]}" for name in sorted(mix)
    ]
    harness = HARNESS.format(
        names=", ".join(mix),
        imports="\n".join(imports),
        classes=", ".join(classes[name] for name in mix),
        name="-and-".join(mix),
    )
    parts = {f"{modules[name]}.py": source for name, source in sources.items()}
    return {
        "name": "-and-".join(mix),
        "files": {"harness.py": harness, **parts},
        "parents": [parent],
        "hypothesis": " ".join(WHY[name] for name in mix),
    }
