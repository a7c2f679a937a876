"""Private copies of a candidate's folder."""

import os
import shutil
import stat
from pathlib import Path


def copy_folder(folder: Path, target: Path) -> Path:
    """Copy plain files and folders, readable by everybody; links are not followed nor copied."""
    target.mkdir(parents=True)
    target.chmod(0o755)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                copy_folder(Path(entry.path), target / entry.name)
            elif entry.is_file(follow_symlinks=False):
                runs = entry.stat().st_mode & stat.S_IXUSR
                shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
                (target / entry.name).chmod(0o755 if runs else 0o644)
    return target


def open_to_all(folder: Path) -> bool:
    """Whether every user may read all of a folder."""
    if folder.stat().st_mode & 0o005 != 0o005:
        return False
    with os.scandir(folder) as entries:
        return all(_open(entry) for entry in entries)


def _open(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return open_to_all(Path(entry.path))
    return entry.is_symlink() or bool(entry.stat().st_mode & 0o004)
