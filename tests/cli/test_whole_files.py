"""A file is there whole or not at all, and an error says which one and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import farthing as fa
from farthing.whole_files import whole_file


def test_it_is_written_and_may_be_read_by_whom_it_may_concern(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    (tmp_path / "plain").write_text("x")
    with whole_file(target) as file:
        file.write("ε\n")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "ε\n"
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["page.md", "plain"]


def test_what_was_there_stays_if_anything_goes_wrong(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    target.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(target) as file:
        file.write(f"half{1 // 0}")
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["page.md"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    with whole_file(tmp_path / "link") as file:
        file.write("after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with whole_file("/dev/null") as file:
        file.write("x")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("path", ["missing/page.md", "."])
def test_why_it_cannot_be_written(path: str, tmp_path: Path) -> None:
    with (
        pytest.raises(fa.InvalidInput, match=r"cannot be written: (No such file|Is a directory)"),
        whole_file(tmp_path / path),
    ):
        pass
