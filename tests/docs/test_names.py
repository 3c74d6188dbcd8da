"""One word, one thing: no package has two public classes, types or functions of one name."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "farthing"
#: Says the same as the engine in words of its own, so that nobody imports one for the other.
ALONE = SOURCE / "checker.py"
#: Names that stand twice in a package, and why that is right.
TWICE = {
    ("cli", "verify_command"): "the commands that verify a certificate, or a ledger",
    ("engine", "physical_column"): "the same of each engine, one file each",
}


def public_names() -> dict[tuple[str, str], list[str]]:
    """By package and name: the files that define it."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        if "migrations" in path.parts or path == ALONE:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            name = None
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                name = node.name
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id if ast.unparse(node.annotation) == "TypeAlias" else None
            if name is not None and not name.startswith("_"):
                place = path.relative_to(SOURCE)
                found[place.parts[0], name].append(place.as_posix())
    return found


def test_one_word_one_thing() -> None:
    twice = {name: places for name, places in public_names().items() if len(places) > 1}
    assert set(twice) == set(TWICE), twice


def test_no_function_has_more_than_seven_parameters_without_names() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args]
                count = len([one for one in given if one.arg not in ("self", "cls")])
                assert count <= 7, f"{path}: {node.name} has {count}"


def test_imports_inside_functions_are_for_what_is_optional() -> None:
    """Our own modules are imported at the top; these places say beside it why not."""
    late = {
        (path.relative_to(SOURCE).as_posix(), inner.module)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("farthing")
    }
    assert late == {
        ("numerics/compiled.py", "farthing.numerics"),
        ("cli/deployment.py", "farthing"),
        ("cli/deployment.py", "farthing.server.doctor"),
        ("cli/deployment.py", "farthing.server.sample"),
        ("cli/deployment.py", "farthing.server.serving"),
        ("cli/deployment.py", "farthing.server.settings"),
        ("cli/deployment.py", "farthing.lab.figures"),
        ("cli/owner.py", "farthing.server.access"),
        ("cli/owner.py", "farthing.server.settings"),
    }


def test_every_exception_from_a_rule_says_why() -> None:
    """`# noqa: X # why`, `# type: ignore[x] # why`; types are checked in src alone."""
    rule = re.compile(r"#\s*(noqa|type: ignore)(.*)")
    for path in [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "tests").rglob("*.py")]:
        if path == Path(__file__):
            continue
        with path.open("rb") as file:
            tokens = list(tokenize.tokenize(file.readline))
        for line in (one.string for one in tokens if one.type == tokenize.COMMENT):
            found = rule.search(line)
            if found is not None:
                assert re.match(r"(: [A-Z]+\d+|\[[a-z-]+\]) # \S", found[2]), f"{path}: {line}"
                assert found[1] == "noqa" or path.is_relative_to(SOURCE), f"{path}: {line}"
