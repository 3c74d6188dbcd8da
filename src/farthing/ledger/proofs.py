"""Claims proved again from nothing: before a tariff is in force, and when a book is verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from farthing.canonical import canonical
from farthing.composition.tariffs.verification import verify_document
from farthing.errors import NotCertified
from farthing.ledger.registered_lists import TOLERANCE, claims_of, composition_of, stated_in

#: Another machine may round a lower bound, which nobody is charged by, differently.
LAST_DIGITS = 1e-9


def prove_certificate(document: Mapping[str, Any]) -> None:
    """Every claim of a certificate follows from its tariff, or NotCertified.

    One that was proved is remembered by its text: the proof takes seconds.
    """
    _prove(canonical(document))


@lru_cache(maxsize=64)
def _prove(written: str) -> None:
    verify_document(json.loads(written))


def prove_list(document: Mapping[str, Any]) -> None:
    """The document is what its list would be registered with today, or NotCertified.

    Word for word, but for the numbers: no ε may be smaller than what is proved again, no lower
    bound larger. Of two proofs, one finer, the better counts.
    """
    _prove_list(canonical(document))


@lru_cache(maxsize=64)
def _prove_list(written: str) -> None:
    stated = stated_in(json.loads(written))
    again = [
        claims_of(composition_of(stated.listed, tolerance))
        for tolerance in (TOLERANCE, TOLERANCE / 4)
    ]
    if [delta for delta, _ in stated.claims] != list(again[0]):
        raise NotCertified("a list states epsilon at every usual delta, and at no other")
    for delta, claim in stated.claims:
        proved = [claims[delta] for claims in again]
        if claim.theorem not in {bracket.theorem for bracket in proved}:
            raise NotCertified(f"at {delta:g} another theorem is the one that proves it")
        if claim.upper < min(bracket.upper for bracket in proved):
            raise NotCertified(f"epsilon <= {claim.upper!r} at {delta:g}")
        if claim.lower > max(bracket.lower for bracket in proved) * (1 + LAST_DIGITS):
            raise NotCertified(f"epsilon >= {claim.lower!r} at {delta:g}")
