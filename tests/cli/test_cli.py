"""The commands as a user runs them: real processes, exit codes, what is on which stream."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import farthing as fa


def farthing(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "farthing", *arguments], capture_output=True, text=True, cwd=cwd
    )


def answer(*arguments: str, cwd: Path | None = None) -> dict[str, object]:
    done = farthing(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_epsilon_as_json() -> None:
    found = answer(
        "epsilon", "100xbr:0.1", "20xdp:0.1", "--delta", "1e-6", "--adaptivity", "none", "--json"
    )
    assert found["lower"] <= found["upper"] == found["epsilon"]
    assert found["upper"] == pytest.approx(3.0592836)
    assert found["theorem"].startswith("optimal non-adaptive")
    assert found["adaptivity"] == "none"
    assert found["items"] == ["100xbr:0.1", "20xdp:0.1"]
    assert found["delta"] == 1e-6


def test_epsilon_as_a_table() -> None:
    done = farthing("epsilon", "25xdp:0.1", "--delta", "1e-6")
    assert done.returncode == 0
    for name in ("optimal-dp", "drv10", "strong", "basic", "renyi"):
        assert name in done.stdout
    marked = [line for line in done.stdout.splitlines() if "➤" in line]
    assert len(marked) == 1
    assert "optimal-dp" in marked[0]
    assert "2.079056" in done.stdout


def test_delta_adaptive_as_json() -> None:
    found = answer("delta", "100xbr:0.1", "--epsilon", "2.0", "--adaptivity", "adaptive", "--json")
    assert 9.4e-6 < found["lower"] <= found["upper"] < 9.5e-6
    assert found["epsilon"] == 2.0


def test_plan_how_many_and_which() -> None:
    many = answer(
        "plan", "br:0.1", "--epsilon", "3", "--delta", "1e-6", "--adaptivity", "none", "--json"
    )
    assert many["count"] == fa.largest_count(
        fa.BoundedRange(0.1), epsilon=3, delta=1e-6, adaptivity="none"
    )
    each = answer("plan", "100xdp", "--epsilon", "3", "--delta", "1e-6", "--json")
    assert each["guarantee"].startswith("dp:0.06")
    assert each["upper"] <= 3
    noise = answer("plan", "100xgauss", "--epsilon", "3", "--delta", "1e-6", "--json")
    assert noise["guarantee"].startswith("gauss:15.43")


TARIFF = """
farthings = 40
[items.select]
guarantee = "br:0.1"
price = 1
[items.count]
guarantee = "dp:0.1"
price = 4
"""


def test_convert() -> None:
    found = answer("convert", "16xgauss:2", "--delta", "1e-6", "--json")
    assert found["rho"] == 2.0
    assert found["mu"] == 2.0
    assert found["epsilon"] is None
    assert found["epsilon_at_delta"] == fa.gaussian_epsilon(1e-6, noise_multiplier=0.5).upper
    assert answer("convert", "2xdp:0.5", "--units", "3", "--json")["epsilon"] == 3.0
    done = farthing("convert", "poisson:0.1/gauss:1")
    assert done.returncode == 0
    assert done.stdout.count("none") == 3
    assert "no theorem" in farthing("convert", "poisson:0.1/gauss:1", "--units", "2").stderr


def test_tariff_certify_and_verify(tmp_path: Path) -> None:
    (tmp_path / "tariff.toml").write_text(TARIFF, encoding="utf-8")
    found = answer(
        "tariff", "certify", "tariff.toml", "--delta", "1e-6", "--output", "proof.json", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert found["farthings"] == 40
    assert found["epsilon_lower"] <= found["epsilon_upper"] <= 1.01 * found["epsilon_lower"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proof.json", "tariff.toml"]
    checked = answer("tariff", "verify", "proof.json", "--json", cwd=tmp_path)
    assert checked["verified"] is True
    assert checked["digest"] == found["digest"]
    text = (tmp_path / "proof.json").read_text(encoding="utf-8")
    (tmp_path / "proof.json").write_text(text.replace("br:0.1", "br:0.2"), encoding="utf-8")
    done = farthing("tariff", "verify", "proof.json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "digest" in done.stderr


def test_tariff_propose(tmp_path: Path) -> None:
    arguments = ["select=br:0.1", "count=dp:0.1", "--epsilon", "2", "--delta", "1e-6"]
    found = answer("tariff", "propose", *arguments, "--json")
    assert found["prices"] == {"select": 1, "count": 4}
    done = farthing("tariff", "propose", *arguments, "--output", "tariff.toml", cwd=tmp_path)
    assert done.returncode == 0
    certified = answer("tariff", "certify", "tariff.toml", "--json", cwd=tmp_path)
    assert certified["farthings"] == found["farthings"]
    assert certified["epsilon_upper"] <= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["epsilon", "foo:1", "--delta", "1e-6"], "kind must be one of"),
        (["epsilon", "1.5xbr:1", "--delta", "1e-6"], "count must be a whole number"),
        (["epsilon", "0xbr:1", "--delta", "1e-6"], "count must be a whole number"),
        (["epsilon", "br:nan", "--delta", "1e-6"], "epsilon must be finite"),
        (["epsilon", "br:inf", "--delta", "1e-6"], "epsilon must be finite"),
        (["epsilon", "br:-1", "--delta", "1e-6"], "at least 0"),
        (["epsilon", "br:1", "--delta", "1"], "less than 1"),
        (["epsilon", "br:1", "--delta", "nan"], "delta must be finite"),
        (["epsilon", "gauss:0", "--delta", "1e-6"], "greater than 0"),
        (["epsilon", "adp:1", "--delta", "1e-6"], "adp:epsilon,delta"),
        (["epsilon", "br", "--delta", "1e-6"], "br:epsilon"),
        (["epsilon", "adp:1,1e-5", "--delta", "1e-6"], "delta must be at least"),
        (["epsilon", "--delta", "1e-6"], "Missing argument"),
        (["epsilon", "br:1", "--delta", "x"], "valid"),
        (["epsilon", "br:1", "--delta", "1e-6", "--adaptivity", "often"], "adaptivity"),
        (["delta", "br:1", "--epsilon", "-1"], "at least 0"),
        (
            ["plan", "3xbr:0.1", "--epsilon", "1", "--delta", "1e-6"],
            "either a count or a parameter",
        ),
        (["plan", "10xzcdp", "--epsilon", "1", "--delta", "1e-6"], "can be planned for"),
        (["tariff", "certify", "nothing.toml"], "not a readable tariff"),
        (["tariff", "propose", "br:0.1", "--epsilon", "1", "--delta", "1e-6"], "select=br:0.1"),
        (
            ["tariff", "propose", "a=br:1", "--epsilon", "5", "--delta", "1e-6", "-o", "no/a.toml"],
            "no/a.toml cannot be written: No such file",
        ),
        (["epsilom"], "Did you mean 'epsilon'?"),
        (["owner", "grnt"], "Did you mean 'grant'?"),
        (["query", "topk"], "Did you mean 'top-k'?"),
        (["epsilon", "br:1", "--dleta", "1e-6"], "--delta"),
    ],
)
def test_bad_input_exits_with_2_and_an_empty_stdout(arguments: list[str], message: str) -> None:
    done = farthing(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_version_and_help() -> None:
    assert farthing("--version").stdout == f"farthing {fa.__version__}\n"
    text = farthing("epsilon", "--help").stdout
    assert "zcdp:ρ" in text


def test_a_shell_completes_commands_and_options() -> None:
    for typed, wanted in (("owner re", "restore"), ("query top-k x --cat", "--category")):
        words = f"farthing {typed}"
        done = subprocess.run(
            [sys.executable, "-m", "farthing"],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "_FARTHING_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split()) - 1),
            },
        )
        assert wanted in done.stdout.split()


COMPILED = """
def wait():
    try:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt as stop:
            raise SystemError("unpickling returned a result with an exception set") from stop
    except SystemError as error:
        raise SystemError("a kernel returned a result with an exception set") from error
"""
PLAIN = "wait = lambda: os.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize("wait", [PLAIN, COMPILED])
def test_an_interrupt_says_what_became_of_the_budget(wait: str) -> None:
    """A real Ctrl-C in the middle of a command, also as compiled code hands it on."""
    code = f"""
import os, signal, sys
from farthing.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # started in the background it is ignored
{wait}
main.app.command("wait")(wait)
sys.argv = ["farthing", "wait"]
main.run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "farthing: interrupted\n"


def test_samples_as_items() -> None:
    found = answer("epsilon", "100xpoisson:0.05/gauss:1.0", "--delta", "1e-5", "--json")
    same = fa.compose([(fa.Subsampled(fa.Gaussian(1.0), 0.05), 100)]).epsilon_at(1e-5)
    assert (found["lower"], found["upper"]) == (same.lower, same.upper)
    done = farthing("epsilon", "poisson:0.1/br:0.1", "--delta", "1e-5")
    assert done.returncode == 2
    assert "no pair dominates" in done.stderr


def test_calibrate() -> None:
    arguments = ("100xpoisson:0.05/gauss:?", "10xdp:0.01", "--epsilon", "1", "--delta", "1e-5")
    found = answer("calibrate", *arguments, "--json")
    assert found["upper"] <= 1
    assert found["lower"] >= 0.99
    assert found["items"][0].startswith("100xpoisson:0.05/gauss:")
    laplace = answer("calibrate", "10xlap:?", "--epsilon", "1", "--delta", "1e-5", "--json")
    assert 0.1 < float(laplace["items"][0].partition(":")[2]) < 1
    for wrong in (("gauss:1",), ("gauss:?", "lap:?"), ("zcdp:?",)):
        done = farthing("calibrate", *wrong, "--epsilon", "1", "--delta", "1e-5")
        assert done.returncode == 2
        assert "?" in done.stderr


def test_tradeoff() -> None:
    found = answer("tradeoff", "gauss:1", "--prior", "0.1", "--records", "2", "--json")
    assert found["advantage"] == pytest.approx([0.38292492, 0.38292492])
    assert found["membership"][1] == pytest.approx(0.90133, abs=1e-4)
    assert found["record"][1] == pytest.approx(0.84134, abs=1e-4)
    assert found["mu"] == pytest.approx([1.0, 1.0], abs=2e-3)
    assert [alarms for alarms, *_ in found["misses"]] == [0.001, 0.01, 0.05, 0.1, 0.25, 0.5]
    done = farthing("tradeoff", "dp:1")
    assert "right at most 73.2 %" in " ".join(done.stdout.split())
    for wrong in (("--prior", "0"), ("--prior", "nan"), ("--records", "0")):
        assert farthing("tradeoff", "dp:1", *wrong).returncode == 2


def test_a_service_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    (tmp_path / "farthing.toml").write_text('ledger = "budget.db"\n', encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = farthing("serve", "--config", "farthing.toml", "--listen", place, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "", "no console is announced where none will be"
    assert f"nothing can listen at {place}" in done.stderr
    done = farthing("doctor", "--config", "other.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no other.toml" in done.stderr
