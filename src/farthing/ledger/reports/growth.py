"""Whether the rows stay as they are, and what the guarantees say if they do not.

The theorems are in docs/theory/concurrency.md, section 8. The ledger cannot know why rows change,
so a statement claims what holds in the worse case and says what the better one would give.
"""

from __future__ import annotations

from typing import Any

from farthing.ledger.entries import AddDataset, Declaration, DeclareVersion, Describe
from farthing.ledger.roles.reader import Reader

FIXED = "rows do not change"
MAY_DEPEND = "rows change, and may depend on releases"
_SAYS = {
    FIXED: "One version of the rows was declared. Neighbouring datasets are two tables.",
    MAY_DEPEND: (
        "Rows arrive, change and go between answers, of questions and of conversations. A unit is "
        "protected with all its rows, past and future. The guarantee compares two worlds that "
        "differ by one unit and in which everybody follows the same rule in answering releases "
        "(docs/theory/concurrency.md, Theorem 6); if the owner knows that rows do not depend on "
        "releases, it is that of one table with everything in it from the start (Theorem 5)."
    ),
}


def growth(reader: Reader, dataset: str) -> dict[str, Any]:
    """The case that a statement names, and how many versions of the rows were declared."""
    declared = reader.entries(dataset, AddDataset.kind, DeclareVersion.kind, Describe.kind)
    versions = [
        entry.fact.declared.dataset.version
        for entry in declared
        if isinstance(entry.fact, Declaration)
    ]
    fixed = None not in versions and len(set(versions)) == 1
    case = FIXED if fixed else MAY_DEPEND
    return {"case": case, "says": _SAYS[case], "versions": len(set(versions))}
