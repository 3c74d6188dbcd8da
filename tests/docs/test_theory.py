"""Pages of proofs: constants are those of the code, and what is cited is in the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farthing.composition.accounts.account_profiles import CAP_SHARE
from farthing.composition.bounds.moment_witness import GIVEN_UP

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "theory").glob("*.md"))


def test_shares_of_delta_are_those_of_the_odometer() -> None:
    page = (DOCS / "theory" / "odometer.md").read_text(encoding="utf-8")
    assert round(100 * CAP_SHARE) == 99
    assert "half of δ" not in page
    assert "The full combination has 99 % of δ; all others but the empty one share the" in page


def test_what_a_witness_gives_up() -> None:
    page = (DOCS / "theory" / "moments.md").read_text(encoding="utf-8")
    assert GIVEN_UP == (1e-3, 1e-2, 0.1, 0.5)
    assert "κ = 10⁻³ or, where that is not confirmed, more (10⁻², 0.1, 0.5)" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_citations_are_in_the_list(page: Path) -> None:
    listed = re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text("utf-8"), flags=re.M)
    cited = re.findall(r"\[([A-Z][A-Za-z]+\d\d)[\],;]", page.read_text(encoding="utf-8"))
    assert set(cited) <= set(listed)
    assert len(set(listed)) == len(listed)
