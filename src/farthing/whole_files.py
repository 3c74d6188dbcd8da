"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from farthing.errors import InvalidInput


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A file to write (and read again), flushed and moved into place if no error occurs.

    InvalidInput says which file cannot be written, and why. After an error an older file is still
    in place. Devices such as /dev/stdout are written to directly.
    """
    target = Path(os.path.realpath(path))
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as stream:
                yield stream
            return
        made = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        with open(made, "x+", encoding="utf-8", newline="\n") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(made, target)
            except BaseException:
                made.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None
