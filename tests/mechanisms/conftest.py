"""Deterministic randomness for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farthing.mechanisms.noise import randomness


@pytest.fixture(autouse=True)
def source() -> Iterator[randomness.BitSource]:
    """All mechanisms run inside a test replay this seed."""
    with randomness._seeded(20200905) as seeded:
        yield seeded
