"""Options that take a list, with commas between."""

from coevolve.errors import InputError


def names(option: str, text: str) -> tuple[str, ...]:
    """Names of something.

    >>> names("--protocols", "naive, joint")
    ('naive', 'joint')
    """
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise InputError(f"{option} must be names with commas between, got {text!r}.")
    return found


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers.

    >>> numbers("--fractions", "0.07,0.2")
    (0.07, 0.2)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} must be numbers with commas between, got {text!r}.") from None


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers.

    >>> whole_numbers("--rounds", "0,4,10")
    (0, 4, 10)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{option} must be whole numbers with commas between, got {text!r}."
        ) from None
