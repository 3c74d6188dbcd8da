"""Formulas in sentences: V_{b−1} and e^{−ε} with indices and exponents where they belong.

They are written so that they can be read as text too, in an editor or a terminal. Code and
displayed formulas stay as they are.
"""

from __future__ import annotations

import re

from mkdocs.structure.pages import Page

#: What is not a sentence: code, and the tags themselves.
APART = re.compile(r"(<pre\b.*?</pre>|<code\b.*?</code>|<[^>]+>)", flags=re.S)
#: A letter, alone but for a mark, or the name of an operator.
BASE = r"(\b(?:sup|inf|max|min|child|RR)|(?<![A-Za-z0-9])[^\W\d_][′∗²̄̃]*|[)∫])"
WITHIN = r"\{([^{}]*)\}|\(((?:[^()]|\([^()]*\))*)\)"


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Sentences of the theory and the errata."""
    if not page.file.src_uri.startswith(("theory/", "errata")):
        return html
    parts = APART.split(html)
    parts[::2] = map(_set, parts[::2])
    return "".join(parts)


def _set(words: str) -> str:
    """Single letters first, so that they may stand inside braces."""
    words = re.sub(BASE + r"_([^\W_]+|⊥|∞)", r"\1<sub>\2</sub>", words)
    words = re.sub(BASE + rf"_(?:{WITHIN})", _lowered, words)
    return re.sub(rf"\^(?:{WITHIN}|([−-]?[^\W_]+))", _raised, words)


def _lowered(found: re.Match[str]) -> str:
    base, braces, brackets = found.groups()
    return f"{base}<sub>{brackets if braces is None else braces}</sub>"


def _raised(found: re.Match[str]) -> str:
    return f"<sup>{next(inside for inside in found.groups() if inside is not None)}</sup>"
