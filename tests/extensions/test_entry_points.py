"""What other packages offer is loaded by name; what is broken harms nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from farthing.errors import Unsupported
from farthing.optional import load
from tests.extensions.packages import install

GROUP = "farthing.things"


def package(folder: Path, name: str, points: str, **modules: str) -> None:
    install(folder, name, {GROUP: [points]}, **modules)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    load.cache_clear()
    yield tmp_path
    load.cache_clear()
    for name in ("outside_good", "outside_bad", "outside_other"):
        sys.modules.pop(name, None)


def test_a_name_is_imported_when_it_is_asked_for(folder) -> None:
    package(folder, "good", "thing = outside_good:THING", outside_good="THING = 7")
    offered = load(GROUP)
    assert list(offered) == ["thing"]
    assert "outside_good" not in sys.modules
    assert offered["thing"] == 7
    assert load("farthing.nothing") == {}
    with pytest.raises(KeyError):
        offered["other"]


def test_a_broken_one_says_so_and_leaves_the_others(folder) -> None:
    package(folder, "good", "thing = outside_good:THING", outside_good="THING = 7")
    package(folder, "bad", "worse = outside_bad:THING", outside_bad="raise OSError('no disk')")
    package(folder, "absent", "gone = outside_nowhere:THING")
    offered = load(GROUP)
    assert sorted(offered) == ["gone", "thing", "worse"]
    with pytest.raises(Unsupported, match=r"from the package bad, .*: OSError: no disk"):
        offered["worse"]
    with pytest.raises(Unsupported, match="the package absent, cannot be used: ModuleNotFound"):
        offered["gone"]
    assert offered["thing"] == 7


def test_a_name_of_two_packages_is_nobodys(folder) -> None:
    package(folder, "good", "thing = outside_good:THING", outside_good="THING = 7")
    package(folder, "other", "thing = outside_other:THING", outside_other="THING = 8")
    with pytest.raises(Unsupported, match="declared twice, by the package good and the package"):
        load(GROUP)["thing"]
    assert "outside_good" not in sys.modules
