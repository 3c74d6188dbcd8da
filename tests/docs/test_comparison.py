"""docs/comparison.md says of other libraries what they do, here and now."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import autodp
import dp_accounting
import opendp
import opendp.prelude as dp
import prv_accountant
import pytest
from autodp.mechanism_zoo import ExactGaussianMechanism, ExponentialMechanism, PureDP_Mechanism
from dp_accounting import pld, rdp

import farthing
import farthing as fa
from farthing import checker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
LIBRARIES = {
    "farthing": farthing,
    "dp-accounting": dp_accounting,
    "OpenDP": opendp,
    "OpenDP (Polars)": opendp,
    "autodp": autodp,
    "prv-accountant": prv_accountant,
}
#: Words in a name that would show that a library has something after all.
NAMES = {
    "bounded range as a kind of its own": r"bounded_?range",
    "an exponential mechanism costs less than pure DP": r"exponential_?mech|noisy_?max|gumbel",
    "answers with both sides": r"pessimistic|lower_?bound|eps_low",
    "a filter: parameters chosen as you go": r"filter|fully_adaptive",
    "Poisson samples of Gaussian noise": r"poisson|subsampl",
    "noise is sampled too": r"^(make_laplace|randomi[sz]e|sample_noise|add_noise)$",
    "a certificate that another program proves": r"certificate",
}
#: Words in the source of OpenDP that would.
WORDS = {
    "SQL": r"sqlglot|sqlparse|parse_sql",
    "the budget outlives the process": r"import (sqlite3|sqlalchemy|psycopg)",
    "the budget holds in a race": r"\bR?Lock\(",
    "questions paid for once (sparse vector)": r"sparse_vector|above_threshold",
    "analysts who are not trusted": r"import (fastapi|flask|aiohttp)",
}


def tables() -> Iterator[tuple[str, str, str]]:
    """(row, column, cell) of both tables."""
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, flags=re.M):
        head, _, *rows = ([c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines())
        for row in rows:
            for column, cell in zip(head[1:], row[1:], strict=True):
                yield row[0], column, cell


CELLS = list(tables())


@cache
def names_in(library: ModuleType) -> frozenset[str]:
    """Every public name in every module, and of every class in them."""
    found = set()
    for info in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        if re.search(
            r"test|\.cli|\.server|\.engine|\.ledger|\.client|__main__|examples", info.name
        ):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(info.name)
        except ImportError:  # a part whose own dependencies are not here
            continue
        for name, value in vars(module).items():
            if not name.startswith("_"):
                found.add(name)
                found |= {one for one in dir(value) if isinstance(value, type)}
    return frozenset(found)


def raises(made: Callable[[], object]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made()
    except Exception:
        return True
    return False


def through_zcdp() -> bool:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    selection = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=1.0)
    return selection.map(1.0) == 0.5 == fa.BoundedRange(2.0).epsilon ** 2 / 8


def in_opendp(scale: float) -> object:
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return dp.m.make_gaussian(*space, scale=scale).map(1.0)


def nan_in_dp_accounting() -> object:
    accountant = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(math.nan))
    return accountant.get_epsilon(1e-6)


def prv(sigma: float) -> tuple[float, float, float]:
    noise = prv_accountant.GaussianMechanism(sigma)
    accountant = prv_accountant.PRVAccountant(
        prvs=[noise], max_self_compositions=[10], eps_error=0.1, delta_error=1e-10
    )
    return accountant.compute_epsilon(1e-6, [4])


def both_sides_of_a_distribution() -> bool:
    high, low = (
        pld.privacy_loss_distribution.from_gaussian_mechanism(
            5.0, pessimistic_estimate=side, value_discretization_interval=1e-3
        ).get_epsilon_for_delta(1e-6)
        for side in (True, False)
    )
    return low < high


def ours_both_sides() -> bool:
    bracket = fa.compose([(fa.BoundedRange(0.1), 9)]).epsilon_at(1e-6)
    return bracket.lower < bracket.upper


#: (row, column) → what shows it, for every cell that does not say no.
SHOWN: dict[tuple[str, str], Callable[[], bool]] = {
    ("an exponential mechanism costs less than pure DP", "OpenDP"): through_zcdp,
    ("an exponential mechanism costs less than pure DP", "autodp"): lambda: (
        ExponentialMechanism(eps=1.0).get_RDP(2.0) < PureDP_Mechanism(eps=1.0).get_RDP(2.0)
    ),
    ("an exponential mechanism costs less than pure DP", "farthing"): lambda: (
        fa.compose([(fa.BoundedRange(0.1), 9)]).epsilon_at(1e-6).upper
        < fa.compose([(fa.PureDP(0.1), 9)]).epsilon_at(1e-6).lower
    ),
    ("bounded range as a kind of its own", "farthing"): lambda: bool(fa.BoundedRange(0.1)),
    ("answers with both sides", "farthing"): ours_both_sides,
    ("answers with both sides", "dp-accounting"): both_sides_of_a_distribution,
    ("answers with both sides", "autodp"): lambda: (
        "compose_subsampled_mechanisms_lowerbound" in names_in(autodp)
    ),
    ("answers with both sides", "prv-accountant"): lambda: prv(5.0)[0] < prv(5.0)[2],
    ("a filter: parameters chosen as you go", "farthing"): lambda: raises(
        lambda: fa.Accountant(1, 1e-6).spend(fa.PureDP(3.0))
    ),
    ("a filter: parameters chosen as you go", "OpenDP"): lambda: callable(dp.c.make_privacy_filter),
    ("Poisson samples of Gaussian noise", "farthing"): lambda: bool(
        fa.Subsampled(fa.Gaussian(1.0), 0.1)
    ),
    ("Poisson samples of Gaussian noise", "dp-accounting"): lambda: bool(
        dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))
    ),
    ("Poisson samples of Gaussian noise", "autodp"): lambda: (
        "SubsampleGaussianMechanism" in names_in(autodp)
    ),
    ("Poisson samples of Gaussian noise", "prv-accountant"): lambda: bool(
        prv_accountant.PoissonSubsampledGaussianMechanism(
            noise_multiplier=1.0, sampling_probability=0.1
        )
    ),
    ("NaN raises", "farthing"): lambda: raises(lambda: fa.Gaussian(math.nan)),
    ("NaN raises", "OpenDP"): lambda: raises(lambda: in_opendp(math.nan)),
    ("NaN raises", "prv-accountant"): lambda: raises(lambda: prv(math.nan)),
    ("noise is sampled too", "farthing"): lambda: "KnownCounts" in names_in(farthing),
    ("noise is sampled too", "OpenDP"): lambda: "make_laplace" in names_in(opendp),
    ("a certificate that another program proves", "farthing"): lambda: (
        "farthing" not in re.findall(r"^(?:from|import) (\w+)", _source(checker), flags=re.M)
    ),
    ("limits per person in the query", "OpenDP (Polars)"): lambda: (
        "truncate_per_group" in names_in(opendp)
    ),
    ("labels that nobody listed", "OpenDP (Polars)"): lambda: callable(dp.m.make_laplace_threshold),
    ("a top-k by private selection", "OpenDP (Polars)"): lambda: callable(dp.m.make_noisy_top_k),
    ("error known before paying", "OpenDP (Polars)"): lambda: "summarize" in names_in(opendp),
    ("databases, Spark", "OpenDP (Polars)"): lambda: "run_on_database" in names_in(opendp),
    ("a budget that refuses", "OpenDP (Polars)"): lambda: callable(dp.c.make_privacy_filter),
    ("synthetic data, models", "OpenDP (Polars)"): lambda: "mst" in _sources(opendp).casefold(),
}
#: Cells that say no because of what happens, not for want of a name.
NOT_SO: dict[tuple[str, str], Callable[[], bool]] = {
    ("answers with both sides", "OpenDP"): lambda: isinstance(in_opendp(5.0), float),
    ("NaN raises", "dp-accounting"): lambda: not raises(nan_in_dp_accounting),
    ("NaN raises", "autodp"): lambda: (
        not raises(lambda: ExactGaussianMechanism(sigma=math.nan).get_approxDP(1e-6))
    ),
}


def _source(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


@cache
def _sources(library: ModuleType) -> str:
    return "\n".join(
        path.read_text(encoding="utf-8", errors="replace")
        for folder in library.__path__
        for path in Path(folder).rglob("*.py")
    )


@pytest.mark.parametrize(("row", "column", "cell"), CELLS)
def test_a_cell(row: str, column: str, cell: str) -> None:
    if (row, column) in SHOWN:
        assert cell not in ("", "no")
        assert SHOWN[row, column]()
    elif (row, column) in NOT_SO:
        assert cell == "no"
        assert NOT_SO[row, column]()
    elif column in LIBRARIES and cell == "no" and row in NAMES:
        has = [name for name in names_in(LIBRARIES[column]) if re.search(NAMES[row], name, re.I)]
        assert has == []
    elif column == "OpenDP (Polars)":
        assert cell == "no"
        assert re.search(WORDS[row], _sources(opendp), flags=re.I) is None
    elif column == "farthing":
        tested = re.fullmatch(r"yes \(`(tests/[\w/]+\.py)`\)|no", cell)
        assert tested
        assert tested[1] is None or (ROOT / tested[1]).exists()
    else:
        link = re.fullmatch(r"\[[a-z]+\]\[(\w+)\]", cell)
        assert cell == "no" or (link and f"\n[{link[1]}]: https://" in PAGE)
