"""One page and one file of plain data from what is kept."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.findings import Beside, markdown_table
from benchmarks.keeping import PARTS, Kept, is_current, kept
from benchmarks.machine import BUSY, ROOT, machine, versions

PAGE, DATA = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks.json"
#: Minutes in which all of it should be through, on two processors.
MINUTES = 40


def write(failures: dict[str, str]) -> Path:
    """The page and the data; parts without a result are named with the reason."""
    found = [one for one in map(kept, PARTS) if one is not None]
    missing = {part: "not measured yet" for part in PARTS if part not in {o.part for o in found}}
    reasons = {**missing, **failures}
    PAGE.write_text(page(found, reasons), encoding="utf-8")
    document = {"machine": machine(), "versions": versions(), "missing": reasons}
    document["parts"] = {one.part: one.document for one in found}
    DATA.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return PAGE


def page(found: list[Kept], missing: dict[str, str]) -> str:
    """What matters first: goals, peers, where a peer wins; then every part."""
    goals = [(one, goal) for one in found for goal in one.findings.goals]
    met = sum(goal.met for _, goal in goals)
    besides = [beside for one in found for beside in one.findings.besides]
    lines = [
        "# Benchmarks\n",
        "Written by `make benchmark`; `docs/benchmarks.json` has the same as plain data. Less is "
        "better in every comparison, and a ratio is the peer's number divided by ours.\n",
        *_trust(found, missing),
        "## Where it ran\n",
        markdown_table(["", ""], [[k, v] for k, v in {**machine(), **versions()}.items()]),
        f"## What was asked for: {met} of {len(goals)}\n",
        markdown_table(["number", "asked for", "measured", "met"], [g.cells for _, g in goals]),
        "## Beside the peers\n",
        _score(besides),
        "### Where a peer is ahead\n",
        _ahead(besides),
        "### All comparisons\n",
        markdown_table(
            ["question", "unit", "farthing", "peer", "theirs", "ratio", "ahead", ""],
            [beside.cells for beside in besides],
        ),
        *(one.findings.markdown for one in found),
    ]
    return "\n".join(lines)


def _trust(found: list[Kept], missing: dict[str, str]) -> list[str]:
    """What a reader must know before believing a time."""
    busy = [f"{one.part} ({one.others:.0%})" for one in found if one.others > BUSY]
    old = [one.part for one in found if not is_current(one)]
    commits = ", ".join(sorted({one.commit for one in found}))
    minutes = sum(one.seconds for one in found) / 60
    lines = [f"Commit {commits}; {minutes:.0f} minutes in all (meant to be under {MINUTES}).\n"]
    if busy:
        lines.append(
            "**Provisional**: others were using the processors when these parts began, so their "
            f"times are too long and ratios of times are rough: {', '.join(busy)}.\n"
        )
    if old:
        lines.append(f"Measured before the last change of the source: {', '.join(old)}.\n")
    lines += [f"- Missing: {part}: {reason}\n" for part, reason in missing.items()]
    return lines


def _score(besides: list[Beside]) -> str:
    counted = {"farthing": 0, "even": 0, "**peer**": 0, "-": 0}
    for beside in besides:
        counted[beside.verdict] += 1
    words = ["farthing ahead", "even", "peer ahead", "not measured"]
    return markdown_table(words, [[str(number) for number in counted.values()]])


def _ahead(besides: list[Beside]) -> str:
    rows = [
        [b.question, b.peer, f"{b.unit}: {b.cells[2]} against {b.cells[4]}", b.note]
        for b in besides
        if b.verdict == "**peer**"
    ]
    if not rows:
        return "Nowhere in this run.\n"
    return markdown_table(["question", "peer", "ours against theirs", ""], rows)
