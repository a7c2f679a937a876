"""Where a file goes: paths as models write them, on the fence, above it, or in the first line."""

import re

_PATH = r"[\w.@+-]+(?:[/\\][\w.@+-]+)*"
_FILE = rf"(?:{_PATH}[/\\])?[\w@+-][\w.@+-]*\.[A-Za-z]\w{{0,7}}"
_KEYED = re.compile(
    rf"\b(?:path|file|filename|file_path|filepath)\s*[=:]\s*[\"'`]?(?P<path>[./\\]*{_PATH})",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?:^|[\s:={{(\"'`*])(?P<path>[./\\]*{_FILE})(?=$|[\s}}):,\"'`*])")
_COMMENT = re.compile(
    r"\s*(?:#|//|--|;|%|/\*|<!--)+\s*(?:(?:path|file|filename)\s*[:=]\s*)?"
    rf"[\"'`]?(?P<path>[./\\]*{_FILE})[\"'`]?\s*(?:\*/|-->)?\s*$",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\W*(?:(?:new |updated |the )?(?:file|path|filename)\b)?\W*", re.IGNORECASE)
_TITLE = re.compile(r"\W*candidate\b", re.IGNORECASE)
"""Of a candidate, whose name may look like that of a file."""
_LONGEST_LINE = 200


def named(info: str) -> str | None:
    """The path that the info of a fence names.

    >>> named("python path=harness.py"), named("python:lib/index.py"), named("python")
    ('harness.py', 'lib/index.py', None)
    """
    found = _KEYED.search(info[:_LONGEST_LINE]) or _BARE.search(info[:_LONGEST_LINE])
    return None if found is None else tidy(found["path"])


def above(text: str) -> str | None:
    """The path that the last line before a block names: a heading, or a sentence with a colon.

    >>> above("### `harness.py`"), above("Now the helper, **lib/index.py**:"), above("Like a.py.")
    ('harness.py', 'lib/index.py', None)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or len(lines[-1]) > _LONGEST_LINE:
        return None
    last = lines[-1]
    if _TITLE.match(last):
        return None
    paths = {tidy(found["path"]) for found in _BARE.finditer(last)}
    if len(paths) != 1:
        return None
    [path] = paths
    alone = _LEAD.sub("", last).strip("`*\"':() ") == path
    marked = last.startswith("#") or last.rstrip("*_ ").endswith(":") or f"**{path}**" in last
    return path if alone or marked else None


def commented(content: str) -> tuple[str | None, str]:
    r"""The path in a comment that is the first line, and the content without that line.

    >>> commented("# harness.py\nx = 1\n"), commented("# a harness\n")
    (('harness.py', 'x = 1\n'), (None, '# a harness\n'))
    """
    first, newline, rest = content.lstrip("\n").partition("\n")
    found = _COMMENT.match(first) if newline and len(first) <= _LONGEST_LINE else None
    return (None, content) if found is None else (tidy(found["path"]), rest)


def tidy(path: str) -> str:
    r"""A path as candidates have it, if it can be one.

    >>> tidy("./harness.py"), tidy("lib\\index.py"), tidy("/workspace/a.py"), tidy("../a.py")
    ('harness.py', 'lib/index.py', 'workspace/a.py', '../a.py')
    """
    path = path.strip().replace("\\", "/").rstrip(".,:;")
    while path.startswith(("./", "/")):
        path = path[1:] if path.startswith("/") else path[2:]
    return re.sub(r"/(?:\./)*/*", "/", path)
