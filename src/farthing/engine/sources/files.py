"""Files, folders and patterns, and where they really are."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from farthing.errors import InvalidInput

_WILD = set("*?[")


def files_of(path: str) -> list[str]:
    """The files that a path, a folder or a pattern stands for, in order."""
    if os.path.isdir(path):
        inside = os.path.join(glob.escape(path), "**", "*.parquet")
        found = sorted(glob.glob(inside, recursive=True))
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"there is no file {path!r:.200}")
    odd = next((file for file in found if set(file) & _WILD), None)
    if odd is not None:
        raise InvalidInput(f"{odd} has one of *, ? and [ in its name, which are for patterns")
    return [os.path.realpath(file) for file in found]


def location_of(path: str) -> str:
    """The file or folder itself, links followed; for a pattern the folder it looks into."""
    path = local_path(path)
    if not os.path.exists(path):
        parts = Path(path).parts
        wild = next((i for i, part in enumerate(parts) if set(part) & _WILD), len(parts))
        path = str(Path(*parts[:wild])) if wild else "."
    return f"file:{os.path.realpath(path)}"


def local_path(path: str) -> str:
    """A path on this machine from itself or from its address, file:///…"""
    parts = urlsplit(path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    return path


def title_of(path: str, table: str | None = None) -> str:
    """A name to show for the data: the last part of its path without its ending."""
    stem = Path(path.rstrip("/")).name.split(".")[0] or "table"
    return stem if table is None else f"{stem}.{table}"
