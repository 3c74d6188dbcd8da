"""The page of every command and option, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

from farthing.cli.main import app

INTRODUCTION = """\
# Commands

Every command of `farthing` and each of its options, from the commands themselves; with `--help`
they say the same. Errors go to standard error with exit code 2. `python -m farthing` is the same
program, and `farthing --install-completion` teaches your shell.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds reference/commands.md."""
    parts = [INTRODUCTION, *_sections(get_command(app), "farthing", None)]
    files.append(File.generated(config, "reference/commands.md", content="\n".join(parts)))
    return files


def _sections(command: Any, name: str, parent: Any) -> Iterator[str]:
    """One section for each command, those inside a group after it."""
    context = command.context_class(command, info_name=name, parent=parent)
    yield f"## {name}\n\n{_paragraphs(command.help or '')}\n\n{_table(command, context)}"
    if hasattr(command, "list_commands"):  # a group, by what click calls one
        for child in command.list_commands(context):
            yield from _sections(command.get_command(context, child), f"{name} {child}", context)


def _table(command: Any, context: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    rows = [f"| {_names(one)} | {_words(one, context)} |" for one in shown]
    return "\n".join(["| | |", "|---|---|", *rows, ""]) if rows else ""


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _words(parameter: Any, context: Any) -> str:
    said = [_cell(getattr(parameter, "help", None) or "")]
    default = parameter.get_default(context, call=False)
    if default not in (None, False, (), []) and not callable(default):
        said.append(f"Default: `{default}`.")
    if isinstance(parameter.envvar, str):
        said.append(f"`{parameter.envvar}` stands in for it.")
    if parameter.required:
        said.append("*Required.*")
    return " ".join(filter(None, said))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _paragraphs(text: str) -> str:
    return text.replace("\b", "").replace("<", "&lt;").strip()
