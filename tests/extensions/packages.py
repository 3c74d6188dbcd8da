"""Packages as `pip install --target` leaves them: modules, and metadata beside them."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, name: str, points: dict[str, list[str]], **modules: str) -> None:
    """A package with these entry points by group, and these modules."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (f"[{group}]\n" + "\n".join(lines) for group, lines in points.items())
    (metadata / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
