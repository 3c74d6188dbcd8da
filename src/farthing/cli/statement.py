"""`farthing statement`."""

from __future__ import annotations

import io
import json

from farthing.cli import options
from farthing.cli.ledger_options import Name, Output, put
from farthing.cli.output import patience


def statement(
    name: Name,
    where: options.LedgerAt,
    delta: options.Delta = 1e-6,
    output: Output = None,
    as_json: options.AsJson = False,
) -> None:
    """What a deployment should say about itself (NIST SP 800-226), in Markdown or JSON."""
    from farthing import ledger  # its database library may not be installed

    with ledger.Ledger.open(where, upgrade=False) as book, patience("writing the statement"):
        data = ledger.statement(book.reader(), name, delta=delta)
    put(output, io.StringIO(json.dumps(data) + "\n" if as_json else ledger.markdown(data)))
