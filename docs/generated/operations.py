"""The table of what an owner can do, from the declarations of the operations."""

from __future__ import annotations

import inspect

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from farthing import Desk
from farthing.engine.desk.operations import OPERATIONS, Operation

INTRODUCTION = """\
# An owner's operations

What an owner can do, from the declarations themselves. A `Desk` has every operation as a method,
for a ledger here (`fa.Desk.open("budget.db")`) and for a service (`fa.connect(url, token="fth_…")`
with an owner's token). Operations without a request are done on the machine of the ledger.
Requests are under `/v1/owner`; [endpoints](endpoints.md) and [commands](commands.md) have their
fields.

| method | what it does | command | request |
|---|---|---|---|
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds reference/operations.md."""
    rows = "\n".join(map(_row, OPERATIONS.values()))
    page = INTRODUCTION + rows + "\n"
    files.append(File.generated(config, "reference/operations.md", content=page))
    return files


def _row(operation: Operation) -> str:
    signature = inspect.signature(getattr(Desk(None), operation.name))
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    method = f"{operation.name}{inspect.Signature(plain)}"
    words = operation.words.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    command = f"`farthing {operation.command}`" if operation.command else ""
    request = f"`{operation.method} {operation.path}`" if operation.path else ""
    return f"| `{method}` | {words} | {command} | {request} |"
