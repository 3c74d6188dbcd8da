"""Books that no ledger wrote, with every hash right: anybody who has an export can make them.

A batch was run twice, because its first run was closed as unused; half a batch, and `true` of
one, were reserved; lists claimed nothing, or anything, and were called proved; a copy for reading
went on selling after an invented seal.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import farthing as fa
from farthing.canonical import canonical, digest, sha256
from farthing.interactive import Exceeds, SparseVector
from farthing.ledger import (
    Damaged,
    Dataset,
    Ledger,
    Limits,
    ReadOnly,
    RegisteredBatch,
    RegisteredSet,
    Use,
    export_lines,
    import_lines,
    move,
    verify,
)
from farthing.ledger.entries.fact import GENESIS, ChainCheck, linked
from farthing.ledger.reports.verify import _prove
from farthing.ledger.roles import conversations as talking
from farthing.schema import Column, Schema

Facts = list[dict[str, Any]]
Path_ = tuple[str | int, ...]

WATCH = SparseVector.from_epsilon(1.0, positives=2, monotone=True)
SECOND = "the same tariff again"
LOW = Exceeds(0, 1000)


@pytest.fixture(scope="session")
def signed() -> fa.Certificate:
    items = {
        "talk": (fa.PureDP(1.0), 10),
        "select": (fa.BoundedRange(0.1), 1),
        "threshold": (fa.ApproximateDP(0.05, 1e-9), 1),
    }
    tariff = fa.Tariff(items, farthings=60, delta_units=10, delta_unit=1e-9)
    return tariff.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, signed: fa.Certificate) -> Facts:
    """The facts of a book with every kind of entry, which moved once."""
    folder = tmp_path_factory.mktemp("books")
    schema = Schema((Column("member", "text"), Column("n", "integer", lower=0, upper=9)))
    with Ledger.open(folder / "a.db") as here, Ledger.open(folder / "b.db") as there:
        owner = here.owner()
        plain = Dataset("e", unit="member", owner="team", limits=Limits(3))
        owner.add(plain)
        owner.describe(
            Dataset(
                "e", unit="member", owner="team", limits=Limits(3, 2), schema=schema,
                location="file:/data/e.parquet", version="1",
            )
        )  # fmt: skip # what was declared, and more
        owner.relocate("e", "file:/new/e.parquet")
        owner.declare_version("e", "2")
        owner.sign("e", signed)
        owner.grant("e", "ann", farthings=40, delta_units=5)
        owner.grant("e", "may", farthings=5, renewal="monthly")
        owner.register("e", "board", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann")
        owner.register("e", "menu", RegisteredSet({"s": (fa.PureDP(0.1), 3)}), analyst="ann")
        ann = here.analyst("e", "ann")
        held = ann.reserve({"select": 4, "threshold": 2}, question={"k": 1})
        ann.close(
            held, "d", used={"select": 1, "threshold": 1}, release={"answer": 1},
            use=Use("a selection", "one key", (("br:0.1", 1),)),
        )  # fmt: skip # everything that can be kept
        ann.abandon(ann.reserve({"select": 1}), reason="crash")
        ann.close(ann.reserve_list("board"), "d")
        ann.close(ann.reserve_list("menu", items={"s": 2}), "d", used={"s": 1})
        here.analyst("e", "may").reserve({"select": 1})
        owner.revoke("e", "may")
        with pytest.MonkeyPatch.context() as often:
            often.setattr(talking, "NOTED_EVERY", 2)
            talk = ann.open_conversation(WATCH, question={"watch": 1})
            talk.ask_many([({}, LOW)] * 3)
        talk.close()
        move(here, there)
        owner = there.owner()
        owner.grant("e", "may", farthings=5, renewal="monthly")
        owner.sign("e", signed, name=SECOND)
        return facts_of(there)


def facts_of(ledger: Ledger) -> Facts:
    return [entry.fact.to_json() for entry in ledger.reader().entries("e")]


def chained(facts: Facts) -> Iterator[tuple[int, str, str, str]]:
    """As a clever forger writes them: number, text, previous hash, hash."""
    previous = GENESIS
    for number, given in enumerate(facts, start=1):
        fact = {**given, "seal": previous} if given.get("kind") == "resume" else given
        written = canonical(fact)
        hash_ = linked(previous, sha256(written))
        yield number, written, previous, hash_
        previous = hash_


def lines(facts: Facts) -> list[str]:
    made = ['{"format": "farthing ledger 1"}']
    for number, written, previous, hash_ in chained(facts):
        entry = {"dataset": "e", "number": number, "fact": json.loads(written)}
        made.append(json.dumps({**entry, "previous": previous, "hash": hash_}))
    return made


def judge(facts: Facts, place: Path) -> None:
    """Import and verify, or Damaged."""
    with Ledger.open(place) as ledger:
        import_lines(ledger, lines(facts))
        assert verify(ledger.reader(), prove=True)[0].proved


# one field at a time


@dataclass(frozen=True)
class Forged:
    kind: str
    path: str
    how: str
    entry: int
    fact: dict[str, Any]


MISSING = object()


def others(value: Any) -> Iterator[tuple[str, Any]]:
    """What a forger may put where this value is."""
    yield "missing", MISSING
    for other in (True, False, 0.5, -1, 10**30, 1e300, "x", "", "1", None, [], {}, ["x"], {"x": 1}):
        yield repr(other), other
    if type(value) is int:
        yield "as a float", float(value)
        yield "one more", value + 1
        yield "negative", -value
    if type(value) is float:
        yield "larger", value * 1.5
        yield "smaller", value / 1.5
    if isinstance(value, dict):
        yield "one key more", {**value, "extra": 1}
    if isinstance(value, list):
        yield "one more", [*value, *value[-1:]]


def forgeries(entry: int, fact: dict[str, Any]) -> Iterator[Forged]:
    yield Forged(fact["kind"], "", "one key more", entry, {**fact, "extra": 1})
    for path in paths(fact):
        before = at(fact, path)
        if path[0] == "certificate" and fact["name"] == SECOND and len(path) > 1:
            continue  # the same was forged in the first
        for how, other in others(before):
            if other is not MISSING and canonical(other) == canonical(before):
                continue
            changed = copy.deepcopy(fact)
            if other is MISSING:
                del at(changed, path[:-1])[path[-1]]
            else:
                at(changed, path[:-1])[path[-1]] = other
            resigned(changed, path)
            yield Forged(fact["kind"], shown(path), how, entry, changed)


def resigned(fact: dict[str, Any], path: Path_) -> None:
    """The digest of a certificate or of a list, anew."""
    for name in ("certificate", "document"):
        inner = fact.get(name)
        if path[0] == name and isinstance(inner, dict) and "digest" not in path and len(path) > 1:
            inner.pop("digest")
            inner["digest"] = digest(inner)


def paths(value: Any, here: Path_ = ()) -> Iterator[Path_]:
    """Every place in it; of a long list the first and the last."""
    keys: list[str | int] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list) and value:
        keys = sorted({0, len(value) - 1})
    for key in keys:
        yield (*here, key)
        yield from paths(value[key], (*here, key))


def at(value: Any, path: Path_) -> Any:
    for key in path:
        value = value[key]
    return value


def shown(path: Path_) -> str:
    return ".".join("*" if isinstance(key, int) else key for key in path)


def copied(walk: ChainCheck) -> ChainCheck:
    """Tariffs and what is declared never change, and need no copies."""
    kept = [*walk.state.tariffs.values(), walk.state.declaration]
    kept += [talk.mechanism for talk in walk.state.conversations.values()]
    return copy.deepcopy(walk, {id(one): one for one in kept})


def survivors(facts: Facts) -> Iterator[Forged]:
    """Forgeries that the chain itself does not refuse at once."""
    walk = ChainCheck("e")
    for place, (number, written, previous, hash_) in enumerate(chained(facts)):
        for forged in forgeries(place, json.loads(written)):
            text = canonical(forged.fact)
            try:
                copied(walk).take(number, text, previous, linked(previous, sha256(text)))
            except Damaged:
                continue
            yield forged
        walk.take(number, written, previous, hash_)


#: What may be otherwise, and why it makes no book that a ledger could not have written.
OWNERS = "the owner may decide it so"
WORDS = "words of who ran it, which nothing is computed from"
LARGER = "a bound that is further off is proved too"
FEWER = "what is not claimed needs no proof"
VERSION = "any version may have computed it"
FIRST = "the first format did not have it"
MILDER = "the mechanism costs no more than was paid for it"
HARMLESS: dict[tuple[str, str], str] = {
    ("dataset", "beside"): FIRST,
    ("dataset", "ledger"): FIRST + "; and of another name it is as good a copy",
    ("dataset", "description.limits.contribution_limit"): OWNERS,
    ("dataset", "description.version"): OWNERS,
    ("version", "description.version"): OWNERS,
    ("describe", "description.schema.*.lower"): "the same number as a real one",
    ("describe", "description.schema.*.upper"): "the same number as a real one",
    ("relocate", "description.schema.*.lower"): "the same number as a real one",
    ("relocate", "description.schema.*.upper"): "the same number as a real one",
    ("version", "description.schema.*.lower"): "the same number as a real one",
    ("version", "description.schema.*.upper"): "the same number as a real one",
    ("account", "name"): OWNERS,
    ("account", "share"): "a larger index is a smaller share; without one its number counts",
    ("account", "certificate.grid"): "any grid is sound, and earlier versions named none",
    ("account", "certificate.grid.cells"): "any grid is sound",
    ("account", "certificate.grid.step"): "any grid is sound",
    ("account", "certificate.grid.unit_step"): "any grid is sound",
    ("account", "certificate.delta_at"): FEWER,
    ("account", "certificate.delta_at.*"): FEWER,
    ("account", "certificate.delta_at.*.epsilon"): LARGER,
    ("account", "certificate.delta_at.*.lower"): LARGER,
    ("account", "certificate.delta_at.*.upper"): LARGER,
    ("account", "certificate.epsilon_at"): FEWER,
    ("account", "certificate.epsilon_at.*"): FEWER,
    ("account", "certificate.epsilon_at.*.delta"): LARGER,
    ("account", "certificate.epsilon_at.*.lower"): LARGER,
    ("account", "certificate.epsilon_at.*.upper"): LARGER,
    ("account", "certificate.profile.*.*"): LARGER,
    ("account", "certificate.tolerance"): "how it was computed, and not what it states",
    ("account", "certificate.versions.farthing"): VERSION,
    ("account", "certificate.versions.numba"): VERSION,
    ("account", "certificate.versions.numpy"): VERSION,
    ("account", "certificate.versions.python-flint"): VERSION,
    ("account", "document.epsilon_at.*.lower"): LARGER,
    ("account", "document.epsilon_at.*.upper"): LARGER,
    ("account", "document.list.*.*"): "a query of a batch has any name",
    ("account", "document.versions.farthing"): VERSION,
    ("grant", "farthings"): OWNERS,
    ("grant", "delta_units"): OWNERS,
    ("grant", "analyst"): OWNERS,
    ("reserve", "items.s"): "three of them were registered",
    ("close", "unused"): "nothing came back",
    ("close", "unused.s"): "no more came back than was reserved",
    ("close", "revoked"): "an earlier format did not have it",
    ("close", "release"): "an answer is what it is; its digest covers more than the ledger keeps",
    ("close", "release.answer"): "as above",
    ("close", "release_digest"): WORDS,
    ("close", "use"): FIRST,
    ("close", "use.what"): WORDS,
    ("close", "use.contribution"): WORDS,
    ("close", "use.guarantees"): WORDS,
    ("close", "use.guarantees.*"): WORDS,
    ("close", "use.guarantees.*.*"): WORDS,
    ("abandon", "reason"): WORDS,
    ("open", "mechanism.sparse_vector.answer_epsilon"): MILDER,
    ("open", "mechanism.sparse_vector.threshold_epsilon"): MILDER,
    ("open", "mechanism.sparse_vector.monotone"): MILDER,
    ("open", "mechanism.sparse_vector.positives"): MILDER,
    ("open", "mechanism.sparse_vector.sensitivity"): MILDER,
    ("end", "reason"): WORDS,
}


def test_every_kind_of_entry_is_forged_below(honest: Facts) -> None:
    kinds = {fact["kind"] for fact in honest}
    assert kinds == {
        "dataset", "describe", "version", "account", "grant", "revoke", "reserve", "close",
        "abandon", "open", "said", "end", "seal", "resume", "relocate",
    }  # fmt: skip # every kind


def follow(facts: Facts) -> None:
    """All that import and verify do, but without a database; or an error of farthing."""
    walk = ChainCheck("e")
    for entry in chained(facts):
        walk.take(*entry)
    _prove(walk)


def test_one_field_that_is_forged_is_refused_or_harmless(honest: Facts, tmp_path: Path) -> None:
    judge(honest, tmp_path / "honest.db")
    accepted: dict[tuple[str, str], Facts] = {}
    for forged in survivors(honest):
        facts = [*honest[: forged.entry], forged.fact, *honest[forged.entry + 1 :]]
        with suppress(Damaged):
            follow(facts)
            assert (forged.kind, forged.path) in HARMLESS, forged
            accepted.setdefault((forged.kind, forged.path), facts)
    assert HARMLESS.keys() - accepted.keys() == set()  # nothing is excused that is refused
    for number, facts in enumerate(list(accepted.values())[::5]):
        judge(facts, tmp_path / f"{number}.db")


# what was accepted


def listed(path: Path, *, sold: bool = True) -> Facts:
    """A dataset, a batch, and its one run."""
    with Ledger.open(path) as ledger:
        owner, ann = ledger.owner(), ledger.analyst("e", "ann")
        owner.add(Dataset("e", unit="u", owner="o"))
        owner.register("e", "board", RegisteredBatch({"q": [fa.PureDP(1.0)]}), analyst="ann")
        if sold:
            ann.close(ann.reserve_list("board"), "d")
        return facts_of(ledger)


def test_a_batch_that_came_back_and_ran_again_is_refused(tmp_path: Path) -> None:
    facts = listed(tmp_path / "a.db")
    returned = {**facts[3], "unused": {"everything": 1}}
    again = [*facts[:3], returned, facts[2], {**facts[3], "settles": 5}]
    with pytest.raises(Damaged, match="runs once and whole") as refused:
        judge(again, tmp_path / "b.db")
    assert refused.value.entry == 4


@pytest.mark.parametrize("times", [0.5, True, 1.0, "1", 0, -1, 10**30])
def test_less_or_other_than_one_batch_is_refused(tmp_path: Path, times: object) -> None:
    facts = listed(tmp_path / "a.db")
    facts[2]["items"] = {"everything": times}
    with pytest.raises(Damaged) as refused:
        judge(facts, tmp_path / "b.db")
    assert refused.value.entry == 3


def claims(**values: object) -> Any:
    def change(document: dict[str, Any]) -> None:
        for claim in document["epsilon_at"]:
            claim.update(values)

    return change


def only(claim: dict[str, Any]) -> Any:
    return lambda document: document.update(epsilon_at=[claim])


@pytest.mark.parametrize(
    "change",
    [
        claims(lower=99.0),
        claims(lower=99.0, upper=100.0),
        claims(upper=0.5),
        claims(upper=True),
        claims(upper="2.0"),
        claims(upper=None),
        claims(upper=float(2**70), lower=-1.0),
        claims(theorem="proved by somebody: epsilon = 0"),
        claims(note="epsilon is 0"),
        only({"delta": 0.999999, "lower": 0.0, "upper": 0.0, "theorem": "x"}),
        lambda document: document.update(epsilon_at=[]),
        lambda document: document["epsilon_at"].pop(),
        lambda document: document["epsilon_at"].reverse(),
        lambda document: document.update(note="epsilon is 0"),
        lambda document: document.update(adaptivity="adaptive"),
        lambda document: document.update(versions={}),
        lambda document: document.update(versions={"farthing": 1}),
        lambda document: document.update(epsilon_at="none"),
        lambda document: document.update(list=[]),
        lambda document: document.update(list=[["q", [["dp:1.0", True]]]]),
    ],
)
def test_a_list_that_claims_otherwise_is_refused(tmp_path: Path, change: Any) -> None:
    facts = listed(tmp_path / "a.db", sold=False)
    document = facts[1]["document"]
    change(document)
    document.pop("digest")
    document["digest"] = digest(document)
    with pytest.raises(Damaged) as refused:
        judge(facts, tmp_path / "b.db")
    assert refused.value.entry == 2


def test_beside_data_of_another_unit_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.db") as ledger:
        ledger.owner().add(Dataset("d", unit="u", owner="o"))
        ledger.owner().add(Dataset("e", unit="u", owner="o"), beside="d")
        facts, (first, *others) = facts_of(ledger), export_lines(ledger.reader(), "d")
    facts[0]["description"]["unit"] = "other"
    forged = [first, others[0], *lines(facts)[1:]]
    with Ledger.open(tmp_path / "b.db") as copied, pytest.raises(fa.InvalidInput, match="unit"):
        import_lines(copied, forged)


# a seal that nobody wrote


def sealed(source: Ledger, successor: Ledger) -> list[str]:
    """An export with a seal that is not in the source."""
    (first, *_), facts = list(export_lines(source.reader())), facts_of(source)
    last = {"kind": "seal", "successor": successor.reader().identity()}
    invented = {**last, **{key: facts[-1][key] for key in ("dataset", "time", "token")}}
    return [first, *lines([*facts, invented])[1:]]


def test_an_invented_seal_makes_no_copy_writable(tmp_path: Path) -> None:
    listed(tmp_path / "a.db", sold=False)
    with Ledger.open(tmp_path / "a.db") as source, Ledger.open(tmp_path / "b.db") as there:
        forged = sealed(source, there)
        import_lines(there, forged)
        assert not there.reader().is_writable("e")
        with pytest.raises(ReadOnly):
            there.analyst("e", "ann").reserve_list("board")
        head = source.reader().head("e").hash
        with pytest.raises(fa.InvalidInput, match="head that the source has"):
            import_lines(there, forged, take_over=[head])
        assert source.reader().is_writable("e")
        assert not there.reader().is_writable("e")


def test_a_book_goes_on_from_a_file_with_the_head_of_its_sealed_source(tmp_path: Path) -> None:
    listed(tmp_path / "a.db", sold=False)
    with Ledger.open(tmp_path / "a.db") as source, Ledger.open(tmp_path / "b.db") as there:
        source.owner().seal("e", successor=there.reader().identity())
        exported = list(export_lines(source.reader()))
        import_lines(there, exported)
        assert not there.reader().is_writable("e")
        (shown_there,) = verify(source.reader())
        import_lines(there, exported, take_over=[shown_there.head])
        assert there.reader().is_writable("e")
        there.analyst("e", "ann").reserve_list("board")
        verify(there.reader(), prove=True)
