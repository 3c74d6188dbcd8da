"""`farthing doctor` finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.ledger import Ledger, move
from farthing.server import doctor
from farthing.wording import THIN
from tests.server.deployment import Deployment


@pytest.fixture
def healthy(tmp_path: Path, certificate: fa.Certificate) -> Deployment:
    """Everything but the process; `later` is not in the ledger, so it is not served."""
    tmp_path.chmod(0o700)
    one = Deployment(tmp_path, str(tmp_path / "budget.db"))
    one.prepare(certificate)
    lines = [f'ledger = "{one.ledger}"', '[datasets.events]\ndata = "events.parquet"']
    one.configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return one


def examined(one: Deployment) -> tuple[int, dict[str, dict[str, Any]]]:
    ran = CliRunner().invoke(app, ["doctor", "--config", str(one.configuration), "--json"])
    told = json.loads(ran.stdout)
    assert told["ok"] == (ran.exit_code == 0)
    return ran.exit_code, {finding["about"]: finding for finding in told["findings"]}


def test_all_is_well(healthy: Deployment) -> None:
    code, found = examined(healthy)
    assert code == 0, found
    assert {"configuration", "libraries", "Java", "permissions", "ledger", "clock"} <= set(found)
    with Ledger.open(healthy.ledger) as ledger:
        assert ledger.reader().head("events").hash[:16] in found["book of events"]["found"]
    assert found["ledger"]["found"].startswith("SQLite 3.")
    shown = CliRunner().invoke(app, ["doctor", "--config", str(healthy.configuration)])
    assert "problem" not in shown.stdout
    assert shown.stdout.count("ok  ") == len(found)


def test_rows_are_compared_with_the_schema(healthy: Deployment) -> None:
    """A column of which nothing can be read is a problem."""
    assert examined(healthy)[1]["rows of events"]["found"] == "as they are declared"
    rows = pq.read_table(healthy.folder / "events.parquet")
    ages, many = rows.column_names.index("age"), f"{rows.num_rows:,}".replace(",", THIN)
    for wrong, ok in ((1, True), (rows.num_rows, False)):
        texts = ["old"] * wrong + ["30"] * (rows.num_rows - wrong)
        changed = rows.set_column(ages, "age", pa.array(texts))
        pq.write_table(changed, healthy.folder / "events.parquet")
        finding = examined(healthy)[1]["rows of events"]
        shown = f"{wrong:,}".replace(",", THIN)
        assert finding["found"] == f"age: {shown} of {many} values do not parse"
        assert finding["ok"] == ok
        assert ok or "as it is stored" in finding["advice"]


def write(one: Deployment, more: str) -> None:
    text = one.configuration.read_text(encoding="utf-8")
    one.configuration.write_text(f"{more}\n{text}", encoding="utf-8")


def no_ledger(one: Deployment, _: pytest.MonkeyPatch) -> None:
    Path(one.ledger).unlink()


def no_tokens(one: Deployment, _: pytest.MonkeyPatch) -> None:
    Path(one.access).unlink()


def others_read(one: Deployment, _: pytest.MonkeyPatch) -> None:
    one.folder.chmod(0o755)
    Path(one.ledger).chmod(0o644)


def unknown_setting(one: Deployment, _: pytest.MonkeyPatch) -> None:
    write(one, "wokers = 2")


def no_data(one: Deployment, _: pytest.MonkeyPatch) -> None:
    (one.folder / "events.parquet").unlink()


def other_data(one: Deployment, _: pytest.MonkeyPatch) -> None:
    text = one.configuration.read_text(encoding="utf-8")
    one.configuration.write_text(text.replace("datasets.events", "datasets.visits"))


def book_moved(one: Deployment, _: pytest.MonkeyPatch) -> None:
    with Ledger.open(one.ledger) as here, Ledger.open(one.folder / "new.db") as there:
        move(here, there)


def others_read_rows(one: Deployment, _: pytest.MonkeyPatch) -> None:
    one.folder.chmod(0o755)
    for file in one.folder.iterdir():
        file.chmod(0o600)
    (one.folder / "events.parquet").chmod(0o644)


def clock_back(_: Deployment, patch: pytest.MonkeyPatch) -> None:
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # noqa: ARG003 # the signature is datetime's
            return datetime.now(UTC) - timedelta(days=1)

    patch.setattr(doctor, "datetime", Earlier)


def no_java(one: Deployment, patch: pytest.MonkeyPatch) -> None:
    text = '[datasets.slow]\ndata = "slow"\nspark = "local[1]"\n'
    one.configuration.write_text(one.configuration.read_text(encoding="utf-8") + text)
    patch.setenv("JAVA_HOME", str(one.folder))


def no_library(_: Deployment, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doctor, "_ENGINES", ("duckdb", "no-such-library"))


@pytest.mark.parametrize(
    ("harm", "about", "words"),
    [
        (no_ledger, "ledger", "owner add"),
        (no_tokens, "tokens", "tokens mint"),
        (others_read, "permissions", "chmod"),
        (unknown_setting, "configuration", "correct"),
        (no_data, "dataset events", "datasets.events"),
        (other_data, "dataset visits", "datasets.visits"),
        (clock_back, "clock", "NTP"),
        (book_moved, "dataset events", "datasets.events"),
        (others_read_rows, "files of events", "chmod"),
        (no_java, "Java", "Java 17"),
        (no_library, "libraries", "pip install"),
    ],
)
def test_each_problem_is_found_and_says_what_to_do(
    healthy: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Deployment, pytest.MonkeyPatch], None],
    about: str,
    words: str,
) -> None:
    harm(healthy, monkeypatch)
    code, found = examined(healthy)
    assert code == 1
    assert not found[about]["ok"]
    assert words in found[about]["advice"]


def test_data_in_another_place_is_not_served_and_said_in_one_sentence(healthy: Deployment) -> None:
    new = healthy.folder / "new"
    new.mkdir()
    (healthy.folder / "events.parquet").rename(new / "events.parquet")
    text = healthy.configuration.read_text(encoding="utf-8")
    text = text.replace('"events.parquet"', '"new/events.parquet"')
    healthy.configuration.write_text(text, encoding="utf-8")
    _, found = examined(healthy)
    assert "farthing owner relocate events" in found["dataset events"]["found"]
    done = subprocess.run(
        [sys.executable, "-m", "farthing", "serve", "--config", str(healthy.configuration)],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "farthing owner relocate events" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_it_changes_nothing(healthy: Deployment) -> None:
    Path(healthy.ledger).unlink()
    Path(healthy.access).unlink()
    examined(healthy)
    assert not Path(healthy.ledger).exists()
    assert not Path(healthy.access).exists()
