"""Shapes of marks, as paths around a place."""

_STAR = ((0.0, -1.0), (0.26, -0.35), (0.95, -0.31), (0.42, 0.13), (0.59, 0.81), (0.0, 0.44))
"""The right half of a star, from its top to its bottom."""


def cross(x: float, y: float, d: float) -> str:
    """Two crossed lines."""
    a, b = f"{2 * d:.1f}", f"{-2 * d:.1f}"
    return f"M{x - d:.1f} {y - d:.1f}l{a} {a}m0 {b}l{b} {a}"


def diamond(x: float, y: float, d: float) -> str:
    """A square on its corner."""
    a, b = f"{d:.1f}", f"{-d:.1f}"
    return f"M{x:.1f} {y - d:.1f}l{a} {a}l{b} {a}l{b} {b}z"


def star(x: float, y: float, r: float) -> str:
    """A star with five points."""
    outline = [*_STAR, *((-a, b) for a, b in reversed(_STAR[1:-1]))]
    return f"M{' '.join(f'{x + r * a:.1f},{y + r * b:.1f}' for a, b in outline)}z"
