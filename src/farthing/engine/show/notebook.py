"""Answers in a notebook: a table and a bar chart with error bars, as HTML and SVG by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from farthing.engine.show.sheet import (
    NOTHING,
    Sheet,
    label_text,
    one_number,
    percent,
    width,
)
from farthing.wording import plain

MOST_BARS = 40
_LEFT, _WIDTH, _RIGHT, _ROW, _BAR = 190, 420, 110, 24, 14
_LETTERS = 26


def answer_html(sheet: Sheet) -> str:
    """One self-contained fragment that follows the colours of the page around it."""
    parts = [f"<strong>{marked(sheet.title)}</strong>"]
    if sheet.single:
        parts.append(escape(" ".join(one_number(sheet))))
    elif not sheet.labels:
        parts.append(NOTHING)
    elif sheet.numbers is not None:
        names = [label_text(label) for label in sheet.labels]
        parts.append(_bar_chart(names, sheet))
        if len(names) > MOST_BARS:
            parts.append(f"and {len(names) - MOST_BARS} more")
        wide = "" if sheet.half_width is None else f" (± {width(sheet.half_width)})"
        whiskers = f"whiskers {percent(sheet.confidence)} intervals{wide}"
        if sheet.in_ranks:
            ranks = width(sheet.half_width or 0)
            whiskers = f"each at {percent(sheet.confidence)} within {ranks} ranks"
        parts.append(f"Bars are released numbers, {whiskers}.")
    else:
        rows = "".join(f"<li>{escape(label_text(label))}</li>" for label in sheet.labels)
        parts.append(f"<ol>{rows}</ol>")
    parts += map(escape, sheet.notes)
    parts.append(f"<small>{escape(sheet.paid)}</small>")
    body = "".join(part if part.startswith(("<svg", "<ol")) else f"<p>{part}</p>" for part in parts)
    return f'<div class="farthing">{body}</div>'


def plan_html(title: str, lines: Iterable[tuple[str, str, str]]) -> str:
    """Price, accuracy and what remains: (what, text, style of a terminal) a row."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(plain(what))}</th>'
        f'<td style="text-align:left">{marked(text)}</td></tr>'
        for what, text, _ in lines
    )
    head = f"<p><strong>{marked(title)}</strong></p>"
    return f'<div class="farthing">{head}<table>{rows}</table></div>'


def answers_html(sheets: Mapping[str, Sheet]) -> str:
    """Several answers, each under its name."""
    parts = (
        f"<h4>{escape(plain(name))}</h4>{answer_html(sheet)}" for name, sheet in sheets.items()
    )
    return f'<div class="farthing">{"".join(parts)}</div>'


def marked(text: str) -> str:
    """Text in HTML: escaped, and names in backquotes as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(plain(text)))


def _bar_chart(names: Sequence[str], sheet: Sheet) -> str:
    """Horizontal bars with whiskers."""
    names = names[:MOST_BARS]
    counts, intervals = (sheet.numbers or ())[:MOST_BARS], (sheet.intervals or ())[:MOST_BARS]
    low = min([0.0, *(low for low, _ in intervals)])
    span = max([0.0, *(high for _, high in intervals)]) - low or 1.0

    def x(value: float) -> float:
        return round(_LEFT + _WIDTH * (value - low) / span, 1)

    height, across = _ROW * len(names) + 8, _LEFT + _WIDTH + _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {height}" width="{across}" '
        'style="max-width:100%;height:auto" role="img" font-family="system-ui, sans-serif" '
        'font-size="13" fill="currentColor">'
    ]
    for i, (name, count) in enumerate(zip(names, counts, strict=True)):
        middle = 4 + _ROW * i + _ROW / 2
        start, end = sorted((x(0), x(count)))
        left, right = map(x, intervals[i])
        parts += [
            f'<text x="{_LEFT - 8}" y="{middle + 4.5}" text-anchor="end">'
            f"{escape(_short(name))}<title>{escape(name)}</title></text>",
            f'<rect x="{start}" y="{middle - _BAR / 2}" width="{round(end - start, 1)}" '
            f'height="{_BAR}" rx="2" fill="#2f7ed8" fill-opacity="0.75"/>',
            f'<path d="M{left} {middle}H{right}M{left} {middle - 4}v8M{right} {middle - 4}v8" '
            'stroke="currentColor" stroke-width="1.4" fill="none"/>',
            f'<text x="{max(right, end) + 8}" y="{middle + 4.5}">{sheet.number_text(i)}</text>',
        ]
    parts.append("</svg>")
    return "".join(parts)


def _short(name: str) -> str:
    """Both ends of a long name: many labels begin alike."""
    end = _LETTERS // 2
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - end - 1]}…{name[-end:]}"
