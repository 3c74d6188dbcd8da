"""Claims proved again from nothing: before a tariff is in force, and when a book is verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from farthing.canonical import canonical
from farthing.composition.certificate import verify_document
from farthing.errors import NotCertified
from farthing.ledger import registered_lists


def prove_certificate(document: Mapping[str, Any]) -> None:
    """Every claim of a certificate follows from its tariff, or NotCertified.

    One that was proved is remembered by its text: the proof takes seconds.
    """
    _prove(canonical(document))


@lru_cache(maxsize=64)
def _prove(written: str) -> None:
    verify_document(json.loads(written))


def prove_list(document: Mapping[str, Any]) -> None:
    """Every claim of a registered list follows from it, or NotCertified."""
    listed = registered_lists.from_document(document)
    if document["adaptivity"] != listed.adaptivity:
        raise NotCertified(f"the list needs adaptivity {listed.adaptivity}")
    again = [registered_lists.composition_of(listed, tolerance) for tolerance in (1e-3, 2.5e-4)]
    for claim in document["epsilon_at"]:
        proved = min(composed.epsilon_at(claim["delta"]).upper for composed in again)
        if claim["upper"] < proved:
            raise NotCertified(f"epsilon <= {claim['upper']!r} at {claim['delta']:g}")
