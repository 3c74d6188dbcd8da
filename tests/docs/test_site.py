"""The site as it is built: strict, complete, and without a request to anywhere else."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright
from typer.main import get_command

from farthing.cli.main import app
from farthing.server.serving import make_app
from farthing.server.settings import settings_from
from tests.console.conftest import CHROMIUM

ROOT = Path(__file__).parents[2]
#: Every package that says what is public of it.
PACKAGES = [
    "farthing",
    *(
        ".".join(path.parent.relative_to(ROOT / "src").parts)
        for pattern in ("*/__init__.py", "lab/*/__init__.py")
        for path in sorted((ROOT / "src" / "farthing").glob(pattern))
        if "__all__ =" in path.read_text(encoding="utf-8")
    ),
]
#: What a browser would fetch from elsewhere when it shows a page.
ELSEWHERE = r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`make docs`, which runs the notebooks too."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def page(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def anchors(site: Path) -> set[str]:
    pages = site.glob("reference/*.html")
    return {found for one in pages for found in re.findall(r'id="([\w.]+)"', one.read_text())}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(site: Path, package: str) -> None:
    module, there = importlib.import_module(package), anchors(site)
    missing = []
    for name in module.__all__:
        thing = getattr(module, name)
        defined = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
        if not {f"{package}.{name}", f"farthing.{name}", defined} & there:
            missing.append(name)
    assert missing == []


def commands(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, Any]]:
    context = command.context_class(command, info_name=name, parent=parent)
    yield name, command
    if hasattr(command, "list_commands"):
        for child in command.list_commands(context):
            yield from commands(command.get_command(context, child), f"{name} {child}", context)


def test_every_command_and_option_is_explained(site: Path) -> None:
    text = unescape(re.sub(r"<[^>]+>", "", page(site, "reference/commands.html")))
    for name, command in commands(get_command(app), "farthing"):
        assert name in text
        assert command.help, f"{name} has no help"
        for one in command.params:
            if not getattr(one, "hidden", False):
                assert getattr(one, "help", None), f"{name}: {one.name} has no help"
                assert one.param_type_name == "argument" or one.opts[0] in text, one.opts


def test_every_endpoint_is_described(site: Path) -> None:
    text = unescape(re.sub(r"<[^>]+>", "", page(site, "reference/endpoints.html")))
    described = make_app(settings_from({"ledger": "budget.db"}, ROOT)).openapi()["paths"]
    assert len(described) > 20
    for path, operations in described.items():
        for method, operation in operations.items():
            assert f"{method.upper()} {path}" in text
            assert operation["description"]
            for one in operation.get("parameters", ()):
                assert one["in"] == "path" or one.get("description"), (path, one["name"])


def test_every_setting_is_on_the_page_of_the_service(site: Path) -> None:
    """The tables themselves are held by tests/server/test_settings_page.py."""
    text, settings = page(site, "service.html"), settings_from({"ledger": "budget.db"}, ROOT)
    for one in fields(settings):
        if one.name not in ("host", "port"):  # together they are `listen`
            assert one.name in text


def test_every_variable_of_the_environment_is_named() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    told = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"FARTHING_[A-Z]+", source)):
        assert name in told


def test_every_extra_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for extra in set(project["optional-dependencies"]) - {"docs", "peers", "test"}:
        assert f".[{extra}]" in told


def test_every_test_that_a_page_names_is_there() -> None:
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        text = path.read_text(encoding="utf-8")
        for named, test in re.findall(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?", text):
            assert (ROOT / named).exists(), f"{path.name}: {named}"
            if test:
                assert f"def {test}(" in (ROOT / named).read_text(encoding="utf-8"), test


def test_notebooks_are_kept_without_outputs_and_shown_with_them(site: Path) -> None:
    kept = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert len(kept) == 3
    for path in kept:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert notebook["nbformat"] == 4
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
        shown = page(site, f"notebooks/{path.stem}.html")
        assert shown.count('class="output"') >= 5
        assert (site / "notebooks" / path.name).exists()


def test_formulas_are_no_emphasis(site: Path) -> None:
    """Stars and underscores of formulas that became markup would be gone from the page."""
    for one in site.glob("theory/*.html"):
        words = re.sub(r"<(pre|code)\b.*?</\1>", "", one.read_text(encoding="utf-8"), flags=re.S)
        for inside in re.findall(r"<em>(.*?)</em>", words, flags=re.S):
            assert re.match(r"[\w(].*\S$", inside, flags=re.S), f"{one.name}: {inside[:60]}"
        sentences = re.sub(r"<[^>]+>", "", words)
        assert "_{" not in sentences, one.name  # set as indices and exponents
        assert "^{" not in sentences, one.name


def test_nothing_is_asked_of_another_server(site: Path) -> None:
    """Every page's own markup; what its scripts do is seen in a browser below."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for one in pages:
        assert re.findall(ELSEWHERE, one.read_text(encoding="utf-8")) == []


def test_search_and_pages_from_the_disk_alone(site: Path) -> None:
    assert CHROMIUM.exists(), "no Chromium here: run tests/bring.sh"
    asked: list[str] = []
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        tab = browser.new_page()
        tab.on("request", lambda one: asked.append(one.url))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        for name in ("notebooks/a-private-dashboard.html", "theory/adaptive.html", "index.html"):
            tab.goto(f"file://{site / name}")
            expect(tab.locator("h1").first).to_be_visible()
        tab.get_by_placeholder("Search").click()
        tab.get_by_placeholder("Search").press_sequentially("odometer")
        expect(tab.locator(".md-search-result__item").first).to_be_visible(timeout=20_000)
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert wrong == []
