"""Files, folders and patterns, and where they really are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from farthing.errors import InvalidInput

#: What is in a pattern and in no name of a file.
WILD = frozenset("*?[{}")


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
    odd = next((file for file in found if set(file) & WILD), None)
    if odd is not None:
        raise InvalidInput(f"{odd} has one of * ? [ {{ }} in its name, which are for patterns")
    files = list(dict.fromkeys(os.path.realpath(file) for file in found))
    require_inside((f"file:{file}" for file in files), location_of(path))
    return files


def require_inside(files: Iterable[str], location: str) -> None:
    """Every file is where the location says, or InvalidInput: links do not lead out of it."""
    below = location.removesuffix("/") + "/"
    for file in files:
        if file != location and not file.startswith(below):
            raise InvalidInput(
                f"{title_of(location)} has links to files elsewhere; name the files where they are"
            )


def location_of(path: str) -> str:
    """The file or folder itself, links followed; for a pattern the folder it looks into."""
    path = local_path(path)
    if _is_pattern(path):
        parts = Path(path).parts
        wild = next((i for i, part in enumerate(parts) if set(part) & WILD), len(parts))
        path = str(Path(*parts[:wild])) if wild else "."
    return f"file:{os.path.realpath(path)}"


def selection_of(path: str) -> str | None:
    """A pattern, as it was given; None for a file or a folder, which are read as a whole."""
    return path if _is_pattern(local_path(path)) else None


def _is_pattern(path: str) -> bool:
    return not os.path.exists(path) and bool(set(path) & WILD)


def is_path_for_spark(text: str) -> bool:
    """Whether Spark reads this as a path or an address; anything else is a table of its
    catalogue."""
    return "/" in text or "\\" in text or text.lower().endswith(".parquet")


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
