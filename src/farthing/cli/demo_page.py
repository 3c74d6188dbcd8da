"""The page of the demonstration: a picture of a release beside the truth, and what it cost.

Drawn with boxes, so that it fits a phone as well as a desk, by day and by night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from farthing.engine.show.sheet import number

_STYLE = """
:root { color-scheme: light dark; --ground: #fbfaf7; --ink: #1d2329; --soft: #5b6570;
  --line: #dfdcd3; --bar: #2f6fb5; --truth: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #e8e6e1; --soft: #9aa4af;
  --line: #2c333b; --bar: #4f93dd; --truth: #ff8a4c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
p { color: var(--soft); margin: .5rem 0 1.25rem; }
.costs { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem;
  margin: 1.25rem 0; padding: 0; }
.costs div { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
.costs dt { color: var(--soft); font-size: .85rem; }
.costs dd { margin: 0; font-size: 1.1rem; font-variant-numeric: tabular-nums; }
.row { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr 4rem; gap: .75rem;
  align-items: center; padding: .3rem 0; }
.name { overflow-wrap: anywhere; }
.count { text-align: right; font-variant-numeric: tabular-nums; }
.track { position: relative; height: 1rem; }
.track * { position: absolute; display: block; }
.bar { left: 0; height: 100%; border-radius: 2px; background: var(--bar); }
.between { top: 50%; height: 2px; margin-top: -1px; background: var(--ink); }
.between::before, .between::after { content: ""; position: absolute; top: -6px; width: 2px;
  height: 14px; background: var(--ink); }
.between::before { left: 0; } .between::after { right: 0; }
.truth { top: 50%; width: 6px; height: 6px; margin: -3px 0 0 -3px; border-radius: 50%;
  background: var(--truth); }
@media (max-width: 34rem) {
  main { padding: 1.5rem 1rem; }
  .row { grid-template-columns: 1fr auto; row-gap: .15rem; padding: .45rem 0; }
  .track { grid-row: 2; grid-column: 1 / -1; }
}
"""


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """One label: what was released, between which numbers, and the truth."""

    name: str
    count: float
    between: tuple[float, float]
    truth: float


def demo_page(
    title: str, words: str, costs: Sequence[tuple[str, str]], rows: Sequence[ReleasedRow]
) -> str:
    """A page that needs nothing but itself."""
    top = max([1.0, *(max(row.between[1], row.truth) for row in rows)])
    told = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in costs)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>farthing: {escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n<p>{escape(words)}</p>\n"
        f'<dl class="costs">{told}</dl>\n{"".join(_drawn(row, top) for row in rows)}</main>\n'
        "</html>\n"
    )


def _drawn(row: ReleasedRow, top: float) -> str:
    def place(value: float) -> float:
        return round(100 * min(max(value / top, 0.0), 1.0), 2)

    low, high = map(place, row.between)
    said = f"{row.name}: released {number(row.count)}, truth {number(row.truth)}"
    return (
        f'<div class="row" role="img" aria-label="{escape(said)}">'
        f'<span class="name">{escape(row.name)}</span>'
        f'<span class="track"><i class="bar" style="width:{place(row.count)}%"></i>'
        f'<i class="between" style="left:{low}%;width:{round(high - low, 2)}%"></i>'
        f'<i class="truth" style="left:{place(row.truth)}%"></i></span>'
        f'<span class="count">{number(row.count)}</span></div>\n'
    )
