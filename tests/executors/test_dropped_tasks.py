"""Candidates in real sandboxes that break what they do not know: it counts as their failure."""

from pathlib import Path

from tests.executors.droppers import WAYS, World, harness, REFUSED, FLOOD, Model, SELF


def show(state, faults, names):
    for n, way in enumerate(names):
        found = {(e["fault"]["blame"], e["fault"]["kind"]) for e in faults if e["candidate"] == f"c{n}"}
        c = state.candidates[f"c{n}"]
        print(way, "|", c.status, found, list(state.selector.scores(f"c{n}").values()) if c.status == "evaluated" else "", c.reason)
    print(state.chosen)


def test_refused(tmp_path: Path) -> None:
    world = World(tasks=3)
    proposed = {f"c{n}": harness(world.known(n, 1), rest=rest) for n, rest in enumerate(REFUSED.values())}
    state, faults = world.search(tmp_path, {**proposed, "honest": harness(world.names[:2])})
    show(state, faults, REFUSED)


def test_unchecked(tmp_path: Path) -> None:
    world = World(tasks=3, checked=False)
    names = [n for n in REFUSED if "import" in n]
    proposed = {f"c{n}": harness(world.known(n, 1), rest=REFUSED[name]) for n, name in enumerate(names)}
    state, faults = world.search(tmp_path, {**proposed, "honest": harness(world.names[:2])})
    show(state, faults, names)


def test_flood(tmp_path: Path) -> None:
    world = World(tasks=4, checked=False, model=Model(per_second=20))
    proposed = {"c0": harness(world.known(0, 1), drop=FLOOD)}
    state, faults = world.search(tmp_path, {**proposed, "honest": harness(world.names[:2])})
    show(state, faults, ["flood"])
    print(state.selector.scores("honest"))
