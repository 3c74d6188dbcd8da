"""Notebooks as pages: run when the site is built, so that what is shown is what happens.

They are kept without outputs: noise differs from run to run, and a file that changes whenever it
is opened tells nobody what changed. A cell that fails ends the build.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

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
    notebook = nbformat.reads(text, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        kernel = AsyncKernelManager(transport="ipc")  # no port that others could reach
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, km=kernel, timeout=120, resources=where).execute()
    heading, *rest = notebook.cells
    notice = f"*Run when this page was built. Take it away: [{name}]({name}).*"
    return "\n\n".join([heading.source, notice, *(part for cell in rest for part in _cell(cell))])


def _cell(cell: nbformat.NotebookNode) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        data = output.get("data", {})
        if "text/html" in data:
            yield f'<div class="output">\n{_one_block(data["text/html"])}\n</div>'
        else:
            shown = output.get("text") or data.get("text/plain", "")
            yield f"```text\n{shown.rstrip()}\n```"


def _one_block(html: str) -> str:
    """Without empty lines, at which Markdown would end the block."""
    return "\n".join(line for line in html.splitlines() if line.strip())
