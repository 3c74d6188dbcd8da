"""A label is data. In a CSV file it must not become a formula, from whichever place the file comes:
the console wrote labels as they are."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess

from farthing.engine.show.sheet import spreadsheet_cell
from farthing.server.serving import CONSOLE

LABELS = [
    *(f"{first}1+1" for first in "=+-@"),
    *(f"{before}=1" for before in ("\t", "\r", "\n", " ", "  ", "\u00a0", "\u200b", "\ufeff")),
    "\uff1d1",
    "\ufe631",
    "\u207a1",
    "a\n=1",
    "a;=1",
    'a"=1',
    "NO",
    "'=1",
    "\u202f=1",
    "1\u202f000",
    "",
]
DIVIDERS = ",;\t\r\n"


def from_the_console(tmp_path, labels: list[str], what: str) -> list[str]:
    shutil.copy(CONSOLE / "spreadsheet.js", tmp_path / "spreadsheet.mjs")
    program = f"""
        import {{ {what} }} from "{tmp_path}/spreadsheet.mjs";
        console.log(JSON.stringify({json.dumps(labels)}.map({what})));
    """
    node = ["node", "--input-type=module", "--eval", program]
    done = subprocess.run(node, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def test_the_console_and_the_command_line_write_the_same_cells(tmp_path) -> None:
    cells = from_the_console(tmp_path, LABELS, "spreadsheetCell")
    assert cells == [spreadsheet_cell(label) for label in LABELS]
    assert cells[:4] == ["'=1+1", "'+1+1", "'-1+1", "'@1+1"]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in cells)


def test_no_divider_of_any_spreadsheet_begins_a_formula(tmp_path) -> None:
    for cell in from_the_console(tmp_path, LABELS, "csvCell"):
        for divider in ",;":
            (row,) = csv.reader([cell], delimiter=divider)
            assert len(row) == 1
            assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
