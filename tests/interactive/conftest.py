"""Deterministic randomness for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farthing.mechanisms.noise import exact_sampling


@pytest.fixture(autouse=True)
def source() -> Iterator[exact_sampling.BitSource]:
    """All conversations of a test replay this seed."""
    with exact_sampling._seeded(20220917) as seeded:
        yield seeded
