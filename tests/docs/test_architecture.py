"""docs/architecture.md is how it is: every module has its place, every walk is the one taken."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.engine.kinds import KINDS
from farthing.ledger import Ledger
from farthing.server import jobs, service
from tests.server.in_process import prepared, served
from tests.waiting import HANGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "farthing"
TARIFF = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, farthings=20)


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n#", 1)[0]


def walk(title: str) -> list[str]:
    """The modules that a walk names, in order."""
    lines = PAGE.split(f"### {title}\n", 1)[1].split("\n#", 1)[0].splitlines()
    return [line.split()[0] for line in lines if line.startswith("    ")]


def noting(order: dict[str, None], look: Callable[[], bool] = lambda: True) -> Callable[..., None]:
    """Notes modules of farthing in the order in which they are first entered, if `look` says so."""

    def note(frame, event, _) -> None:
        if event == "call" and look() and frame.f_code.co_name != "<module>":
            name = frame.f_globals.get("__name__", "")
            if name.startswith("farthing."):
                order.setdefault(name.removeprefix("farthing."))

    return note


def entered(run: Callable[[], object]) -> list[str]:
    """Modules of farthing in the order in which they are first entered."""
    order: dict[str, None] = {}
    sys.setprofile(noting(order))
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(order)


@pytest.fixture
def ledger(tmp_path):
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    rows = pa.table({"member": [1, 2, 3], "country": ["NO", "SE", None]})
    with fa.open(
        rows,
        unit="member",
        ledger=tmp_path / "b.db",
        tariff=certificate,
        farthings=10,
        dataset="events",
    ) as session:
        yield session, tmp_path / "b.db"


def test_a_question(ledger) -> None:
    session, _ = ledger
    taken = entered(lambda: session.count(where={"country": "NO"}).run())
    named = walk("A question")
    assert [name for name in taken if name in named] == named


def test_a_question_over_http(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every thread of the service; the warm-up loads what the first question loads."""
    monkeypatch.setattr(jobs, "BEAT_SECONDS", HANGS)
    monkeypatch.setattr(service, "KEPT_SECONDS", HANGS)  # the first question may take longer
    query = {"kind": "top_k", "by": "country", "contribution_limit": 1, "categories": ["NO", "SE"]}
    order: dict[str, None] = {}
    asked = threading.Event()
    threading.setprofile(noting(order, asked.is_set))
    try:
        with served(prepared(tmp_path), answer_within=HANGS, time_limit=HANGS) as client:
            for k in 1, 2:
                body = {"query": {**query, "k": k}}
                if k == 2:
                    asked.set()
                assert client.post("/v1/datasets/events/run", json=body).status_code == 200
            asked.clear()
    finally:
        threading.setprofile(None)
    named = walk("A question over HTTP")
    assert [name for name in order if name in named] == named
    assert len(order) <= 70


def test_epsilon() -> None:
    taken = entered(lambda: CliRunner().invoke(app, ["epsilon", "97xbr:0.0931", "--delta", "1e-6"]))
    named = walk("`farthing epsilon`")
    assert [name for name in taken if name in named] == named
    assert len(taken) <= 30


def test_a_reservation(ledger) -> None:
    _, path = ledger
    with Ledger.open(path) as book:
        analyst = book.analyst("events", "analyst")
        taken = entered(lambda: analyst.reserve({"count": 1}, question={"count": 1}))
    named = walk("A reservation")
    assert [name for name in taken if name in named] == named


def test_a_question_in_a_conversation(ledger) -> None:
    session, _ = ledger
    conversation, norway = session.watch().open(), session.count(where={"country": "NO"})
    taken = entered(lambda: conversation.exceeds(norway, 1000))
    named = walk("A question in a conversation")
    assert [name for name in taken if name in named] == named


def names_in(text: str) -> set[str]:
    """What a picture lists before the explanation."""
    found: set[str] = set()
    for line in text.splitlines():
        if line.startswith("    "):
            head = re.split(r"\s{2,}", line.strip())[0]
            found |= {part.strip("/").removesuffix(".py") for part in re.split(r"[ ,]+", head)}
    return found


def modules(folder: Path) -> set[str]:
    return {
        path.stem
        for path in folder.iterdir()
        if not path.name.startswith("__") and (path.is_dir() or path.suffix == ".py")
    }


def test_every_module_has_its_place() -> None:
    whole = PAGE.split("## Inside composition", 1)[0]
    assert names_in(whole) == modules(SOURCE) - {"py"}  # a marker
    assert names_in(section("Inside composition")) == modules(SOURCE / "composition")
    assert names_in(section("Inside the mechanisms")) == modules(SOURCE / "mechanisms")
    assert names_in(section("Inside interactive")) == modules(SOURCE / "interactive")
    assert names_in(section("Inside numerics")) == modules(SOURCE / "numerics")
    assert names_in(section("Inside the lab")) == modules(SOURCE / "lab") - {"macbeth_word_counts"}
    assert names_in(section("Inside the engine")) == modules(SOURCE / "engine")
    assert names_in(section("Inside the ledger")) == modules(SOURCE / "ledger")
    assert names_in(section("Inside the client")) == modules(SOURCE / "client")
    assert names_in(section("Inside the command line")) == modules(SOURCE / "cli")
    served = modules(SOURCE / "server") - {"console"}  # files for browsers
    assert names_in(section("Inside the server")) == served


def test_no_kind_of_question_knows_another() -> None:
    modules = {query.__module__ for query in KINDS.values()}
    assert len(modules) >= 5  # kinds that share a computation share a file
    for module in modules:
        text = Path(sys.modules[module].__file__).read_text(encoding="utf-8")
        assert not [other for other in modules - {module} if re.search(rf"{other}\b", text)]
