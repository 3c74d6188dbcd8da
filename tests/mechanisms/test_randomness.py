"""Bits come from the operating system, in blocks, and a seed cannot slip in."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter

import pytest

import farthing.mechanisms as mechanisms
from farthing.mechanisms.noise import exact_sampling
from farthing.mechanisms.noise.exact_sampling import BitSource

from .fit import fits


def test_default_source_reads_the_operating_system() -> None:
    read: list[int] = []
    original = exact_sampling.os.urandom
    source = BitSource(lambda size: (read.append(size), original(size))[1])
    assert inspect.signature(BitSource).parameters["read"].default is original
    values = [source.word() for _ in range(1000)]
    assert len(set(values)) == 1000
    assert len(read) < 10, "one system call per block, not per word"


def test_outside_a_test_block_every_source_is_fresh() -> None:
    token = exact_sampling._TEST_SOURCE.set(None)
    try:
        first, second = exact_sampling.system_bits(), exact_sampling.system_bits()
        assert first is not second
        assert first.bits(256) != second.bits(256)
    finally:
        exact_sampling._TEST_SOURCE.reset(token)


def test_seeded_blocks_replay_and_end() -> None:
    with exact_sampling._seeded(1) as first:
        before = first.bits(500)
    with exact_sampling._seeded(1) as again:
        assert again.bits(500) == before
    with exact_sampling._seeded(2) as other:
        assert other.bits(500) != before


def test_no_public_constructor_or_run_takes_a_seed_or_a_source() -> None:
    for name in mechanisms.__all__:
        thing = getattr(mechanisms, name)
        if not dataclasses.is_dataclass(thing):
            continue
        names = {field.name for field in dataclasses.fields(thing)}
        if hasattr(thing, "run"):
            names |= set(inspect.signature(thing.run).parameters)
        assert not names & {"seed", "source", "rng", "random_state", "generator"}, name


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 64, 100])
def test_below_is_uniform(bound: int, source: BitSource) -> None:
    values = [source.below(bound) for _ in range(4000)]
    if bound == 1:
        assert set(values) == {0}
    else:
        assert fits(values, dict.fromkeys(range(bound), 1 / bound))


def test_below_a_bound_of_many_words(source: BitSource) -> None:
    bound = 3 * 2**190
    values = [source.below(bound) for _ in range(3000)]
    assert all(0 <= value < bound for value in values)
    assert fits([value * 3 // bound for value in values], {0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


@pytest.mark.parametrize("width", [1, 5, 63, 64, 65, 200])
def test_bits_have_the_stated_width(width: int, source: BitSource) -> None:
    values = [source.bits(width) for _ in range(500)]
    assert max(values).bit_length() <= width
    top = Counter(value >> (width - 1) for value in values)
    assert 180 < top[1] < 320
