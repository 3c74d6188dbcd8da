"""One desk, here or at a service: every test takes both ways."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.engine import open_source
from farthing.engine.desk.operations import OPERATIONS, Method
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger import AlreadyThere, Ledger, Limits, NotInLedger
from farthing.server.access import AccessStore, StoredTokens
from tests.server.conftest import WIDE
from tests.server.deployment import CAP, TARIFF, Deployment

HERE, HTTP = "here", "over HTTP"


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory,
    certificate: fa.Certificate,
) -> Deployment:
    """Data, a ledger and tokens of one's own."""
    place = tmp_path_factory.mktemp("desk")
    deployment = Deployment(place, str(place / "budget.db"), limits=WIDE)
    deployment.prepare(certificate)
    return deployment


@pytest.fixture(scope="module")
def remote(made: Deployment) -> Iterator[fa.Desk]:
    try:
        made.start()
        with fa.connect(made.url, token=made.tokens["team"]) as desk:
            yield desk
    finally:
        made.stop()


@pytest.fixture(scope="module", params=[HERE, HTTP])
def desk(request: pytest.FixtureRequest, made: Deployment) -> Iterator[fa.Desk]:
    if request.param == HTTP:
        yield request.getfixturevalue("remote")
        return
    sources = {name: open_source(made.folder / f"{name}.parquet") for name in ("events", "later")}
    store = AccessStore(made.access)
    with fa.Desk(
        Ledger.open(made.ledger), owner="team", sources=sources, tokens=StoredTokens(store)
    ) as desk:
        yield desk
    store.shut()
    for source in sources.values():
        source.shut()


def test_every_operation_is_a_method() -> None:
    methods = {name for name, one in vars(fa.Desk).items() if isinstance(one, Method)}
    assert methods == set(OPERATIONS)


def test_from_a_declaration_to_an_end(desk: fa.Desk, certificate: fa.Certificate) -> None:
    name = "later"
    if name in [one["name"] for one in desk.datasets() if one["declared"]]:
        desk.declare_version(name, "1")  # the same rows, the other way
    else:
        limits = Limits(contribution_limit=3, per_key_limit=2)
        assert "member" in [one["name"] for one in desk.proposed_columns(name)["columns"]]
        added = desk.add(name, fa.Declaration(unit="member", limits=limits))
        assert (added.name, added.unit, added.owner) == (name, "member", "team")
        assert (added.limits, added.version) == (limits, "1")
    with pytest.raises((AlreadyThere, InvalidInput)):
        desk.declare(name, "member")
    account = desk.sign(name, certificate, name=f"of {datetime.now(UTC)}")
    assert (account.mode, account.farthings, account.open) == ("tariff", CAP, True)
    before = desk.grant(name, "zoe", farthings=5, renewal="monthly")
    purse = desk.grant(name, "zoe", farthings=7, renewal="monthly")
    assert (purse.analyst, purse.farthings, purse.renewal) == (
        "zoe",
        before.farthings + 7,
        "monthly",
    )
    assert [one["left"]["farthings"] for one in desk.purses(name) if one["open"]] == [12]
    assert desk.revoke(name, "zoe") == Price(12, purse.delta_units)
    assert desk.retire(name, account.name) == (account.name,)
    with pytest.raises(NotInLedger, match="no tariff in force"):
        desk.certificate(name)
    assert desk.certificate(name, account.name) == certificate.to_json()
    assert [one["open"] for one in desk.accounts(name)][-1] is False


def test_a_budget_is_proved_where_the_ledger_is(desk: fa.Desk) -> None:
    small = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, farthings=3)
    proof = desk.certify(small)
    assert proof.tariff.to_json() == small.to_json()
    assert desk.certify(proof).digest == proof.digest
    for given in ({}, {"tariff": small, "epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0}):
        with pytest.raises(InvalidInput, match=r"epsilon and delta|go together"):
            desk.certify(**given)
    forged = {**proof.to_json(), "digest": "0" * 64}
    with pytest.raises((InvalidInput, fa.NotCertified)):
        desk.certify(certificate=forged)


def test_what_the_book_says(desk: fa.Desk) -> None:
    assert "# Privacy statement for events" in desk.statement("events", 1e-3)["markdown"]
    (verified,) = desk.verify("events")
    assert (verified["dataset"], verified["proved"]) == ("events", False)
    assert desk.history("events", "ann", datetime.now(UTC) - timedelta(days=1)) == []
    assert desk.budget_over_time("events")["caps"][0]["farthings"] == CAP
    assert desk.odometer("events", delta=1e-3)["epsilon"] == 0
    assert desk.odometer("events", ["ann", "bob"], 1e-3)["analysts"] == ["ann", "bob"]
    assert desk.profile("events")["farthings"] == CAP
    assert desk.dataset("events")["unit"] == "member"
    found = desk.largest_number(["10xbr:0.1"], 3.0, 1e-6, months=2)
    assert found["a_month"] == found["questions"] // 2 > 0


def test_a_list_for_an_analyst(desk: fa.Desk) -> None:
    name = f"list of {datetime.now(UTC)}"
    listed = desk.register("events", name, {"all": {"kind": "count"}}, analyst="ann")
    assert (listed.mode, listed.name, listed.analyst) == ("batch", name, "ann")
    with pytest.raises(InvalidInput):
        desk.register("events", "empty", {}, analyst="ann")


def test_versions(desk: fa.Desk) -> None:
    desk.declare_version("private", None)
    assert desk.dataset("private")["version"] is None
    desk.declare_version("private", "2")
    assert desk.dataset("private")["version"] == "2"


def test_tokens(desk: fa.Desk) -> None:
    expires = datetime.now(UTC) + timedelta(days=1)
    minted = desk.mint_token("analyst", "zoe", ["events"], expires)
    assert minted["token"].startswith(f"fth_{minted['id']}_")
    assert minted["id"] in [one["id"] for one in desk.tokens()]
    assert desk.withdraw_token(minted["id"])["revoked"]
    for wrong in ("nothing", "0" * 40, "fth_"):
        with pytest.raises(NotInLedger):
            desk.withdraw_token(wrong)


def test_the_same_errors(desk: fa.Desk) -> None:
    with pytest.raises(NotInLedger):
        desk.grant("nowhere", "ann", farthings=1)
    with pytest.raises(InvalidInput):
        desk.grant("events", "ann", farthings=-1)
    with pytest.raises(NotInLedger):
        desk.add("/etc/passwd", fa.Declaration(unit="member"))
    with pytest.raises(InvalidInput, match="not an open reservation"):
        desk.abandon("events", 1, "no reason")
    with pytest.raises(NotInLedger):
        desk.end_conversation("events", "0" * 16)
    with pytest.raises(TypeError):
        desk.grant("events")
    for add in (lambda: desk.declare("later"), lambda: desk.add("later", fa.Declaration(None))):
        with pytest.raises(InvalidInput, match=r"unit, the column .* \(member.*, or unit = row"):
            add()


def test_what_reads_other_files_stays_on_the_machine(made: Deployment, remote: fa.Desk) -> None:
    """A path on the service's machine is its operator's, not that of an owner's token."""
    assert "team" in repr(remote)
    source = open_source(made.folder / "events.parquet")
    for act in (
        lambda: remote.relocate("events", source),
        lambda: remote.misfits(source, "events"),
        lambda: remote.move("other.db"),
        lambda: remote.back_up("copy.jsonl"),
        lambda: remote.history("events", values=True),
    ):
        with pytest.raises(Unsupported, match="on the machine"):
            act()
    with pytest.raises(InvalidInput, match="its configuration names"):
        remote.add(source, fa.Declaration(unit="member"))
    lookup = {"table": "/etc/passwd", "key": "a", "column": "b"}
    for table in ("later", "events"):
        with pytest.raises(InvalidInput):
            remote.declare(
                table, "member", columns=[{"name": "a", "kind": "text", "lookup": lookup}]
            )
    source.shut()


def test_a_tariff_from_a_file(desk: fa.Desk, tmp_path) -> None:
    TARIFF.write(tmp_path / "tariff.toml")
    account = desk.sign("private", tmp_path / "tariff.toml", name=f"file {datetime.now(UTC)}")
    assert account.farthings == CAP
