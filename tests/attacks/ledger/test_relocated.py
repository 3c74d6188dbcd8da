"""Data that moved keeps its one budget: the place where it was can be no other dataset's."""

from __future__ import annotations

from pathlib import Path

import pytest

import farthing as fa
from farthing.canonical import canonical, sha256
from farthing.ledger import AlreadyThere, Damaged, Dataset, Ledger, move, verify
from farthing.ledger.entries.fact import ChainCheck, linked


def at(name: str, path: str, unit: str = "u") -> Dataset:
    return Dataset(name, unit=unit, owner="o", location=f"file:{path}", version="1")


@pytest.fixture
def moved(target: str) -> Ledger:
    ledger = Ledger.open(target)
    ledger.owner().add(at("x", "/a/x.parquet"))
    ledger.owner().relocate("x", "file:/b/x.parquet")
    return ledger


def test_both_places_are_this_dataset(moved: Ledger) -> None:
    with moved:
        owner, reader = moved.owner(), moved.reader()
        assert reader.dataset("x").location == "file:/b/x.parquet"
        assert reader.places("x") == ("file:/b/x.parquet", "file:/a/x.parquet")
        owner.declare_version("x", "2")
        for taken in ("/a/x.parquet", "/a", "/b/x.parquet", "/b"):
            with pytest.raises(AlreadyThere, match="as the dataset x"):
                owner.add(at("y", taken))
        owner.add(at("y", "/c/y.parquet"))
        for taken in ("/a/x.parquet", "/b/x.parquet"):
            with pytest.raises(AlreadyThere, match="as the dataset x"):
                owner.relocate("y", f"file:{taken}")
        owner.relocate("x", "file:/a/x.parquet")  # and back
        with pytest.raises(AlreadyThere, match="as the dataset x"):
            owner.add(at("z", "/b/x.parquet"))
        verify(reader)


def test_it_must_move_from_one_place_to_another(moved: Ledger) -> None:
    with moved:
        owner = moved.owner()
        owner.add(Dataset("nowhere", unit="u", owner="o"))
        with pytest.raises(fa.InvalidInput, match="no place that was declared"):
            owner.relocate("nowhere", "file:/d")
        with pytest.raises(fa.InvalidInput, match="from one place to another"):
            owner.relocate("x", "file:/b/x.parquet")
        with pytest.raises(fa.InvalidInput, match="resolved absolute path"):
            owner.relocate("x", "file:b/../x.parquet")


def test_the_former_place_goes_along_when_the_book_moves(moved: Ledger, tmp_path: Path) -> None:
    with moved, Ledger.open(tmp_path / "there.db") as there:
        there.owner().add(at("copy", "/a/x.parquet"))
        with pytest.raises(AlreadyThere, match="as the dataset copy"):
            move(moved, there)
        assert moved.reader().is_writable("x"), "nothing was sealed"
    with (
        Ledger.open(tmp_path / "free.db") as free,
        Ledger.open(moved.book.store.url.render_as_string(hide_password=False)) as again,
    ):
        move(again, free)
        with pytest.raises(AlreadyThere, match="as the dataset x"):
            free.owner().add(at("copy", "/a/x.parquet"))
        verify(free.reader())


@pytest.mark.parametrize("kind", ["relocate", "version", "describe"])
def test_a_book_that_forgets_a_former_place_is_refused(moved: Ledger, kind: str) -> None:
    with moved:
        owner, reader = moved.owner(), moved.reader()
        owner.declare_version("x", "2")
        owner.describe(reader.dataset("x"))
        walk = ChainCheck("x")
        for entry in reader.entries("x"):
            fact = entry.fact.to_json()
            if entry.kind == kind:
                forgetful = {name: value for name, value in fact.items() if name != "former"}
                written = canonical(forgetful)
                with pytest.raises(Damaged):
                    walk.take(
                        entry.number,
                        written,
                        entry.previous,
                        linked(entry.previous, sha256(written)),
                    )
                return
            walk.take(entry.number, canonical(fact), entry.previous, entry.hash)
    raise AssertionError("no such entry")
