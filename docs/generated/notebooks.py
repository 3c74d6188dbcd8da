"""Notebooks as pages: run when the site is built, so that what is shown is what happens.

They are kept without outputs: noise differs from run to run, and a file that changes whenever it
is opened tells nobody what changed. Cells run as a notebook runs them, the value of a last
expression shown; a cell that fails ends the build.
"""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import lru_cache
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).parents[1] / "notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each notebook; the notebook itself is there to take away."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        page = rendered(path.name, path.read_text(encoding="utf-8"))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
    return files


@lru_cache(maxsize=8)
def rendered(name: str, text: str) -> str:
    """The notebook run in an empty folder, as Markdown."""
    (_, title), *cells = [
        (cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]
    ]
    parts = [title, f"*Run when this page was built. Take it away: [{name}]({name}).*"]
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for kind, source in cells:
            parts += _run(source, names) if kind == "code" else [source]
    return "\n\n".join(parts).replace(f"{folder}/", "")


def _run(source: str, names: dict[str, Any]) -> Iterator[str]:
    """The cell, what it printed, and the value of its last expression."""
    yield f"```python\n{source}\n```"
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = StringIO(), None
    with redirect_stdout(printed), redirect_stderr(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        yield _text(printed.getvalue())
    shown = getattr(value, "_repr_html_", None)  # what notebooks ask for
    if shown is not None:
        lines = [line for line in shown().splitlines() if line.strip()]  # Markdown ends at others
        yield '<div class="output">\n' + "\n".join(lines) + "\n</div>"
    elif value is not None:
        yield _text(repr(value))


def _text(words: str) -> str:
    return f'<pre class="output">{escape(words.rstrip())}</pre>'
