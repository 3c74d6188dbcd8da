"""A text in SQL as a tree, within limits, and its clauses as they were written.

The tree is read by our own code into a closed form; nothing of the text reaches an engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import sqlglot
from sqlglot import Token, TokenType
from sqlglot import expressions as sge
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from farthing.errors import InvalidInput
from farthing.wording import plain

#: What people write is smaller; what is larger costs time and stack.
LONGEST, MOST_TOKENS, DEEPEST_BRACKETS, LONGEST_RUN = 20_000, 5_000, 24, 40
#: Words that questions are made of. Each of the others (JOIN, UNION, a type before a bracket) may
#: double the time in which the parser finds out what belongs together, and none has many of them.
MOST_UNUSUAL = 8
_USUAL = {TokenType[name] for name in (
    "VAR", "IDENTIFIER", "STRING", "NUMBER", "NULL", "TRUE", "FALSE", "STAR", "COMMA", "DOT",
    "DASH", "PLUS", "SLASH", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NULLSAFE_EQ", "AND", "OR",
    "NOT", "IN", "IS", "BETWEEN", "LIKE", "ILIKE", "SELECT", "DISTINCT", "ALIAS", "FROM", "WHERE",
    "GROUP_BY", "ORDER_BY", "ASC", "DESC", "LIMIT", "INTERVAL", "WHEN", "THEN", "ELSE", "END",
    "L_PAREN", "R_PAREN", "L_BRACKET",
    "R_BRACKET", "R_BRACE",
)}  # fmt: skip # a list of words
_TYPES = sqlglot.Parser.TYPE_TOKENS  # DATE '2026-01-31'; and people call columns date, text, year
#: NUL, and halves of characters that UTF-8 cannot hold.
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
#: How much of a text is quoted back.
QUOTED = 60
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS_A_RUN = (
    *_CLOSING,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.COMMA,
)
_EXACT = (TokenType.IDENTIFIER, TokenType.STRING)
NO_REASONS: Mapping[str, str] = {}
#: What stands for a value that is not there, and what only an engine would understand.
_FOREIGN = {
    TokenType.HINT: "a hint to an engine",
    TokenType.PLACEHOLDER: "a parameter without its value",
    TokenType.PARAMETER: "a parameter without its value",
    TokenType.COLON: "a parameter without its value",
    TokenType.L_BRACE: "a template",
    TokenType.SEMICOLON: "a second statement",
}


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text and its tokens."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, text: object) -> SqlText:
        """The text, if it has tokens and is of a size that people write."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"SQL must be a text that says something, got {text!r:.60}")
        if len(text) > LONGEST:
            raise InvalidInput(f"SQL must have at most {LONGEST} characters, got {len(text)}")
        if _UNREADABLE.search(text):
            raise InvalidInput("SQL must be Unicode, without NUL and without lone surrogates")
        try:
            tokens = sqlglot.tokenize(text)
        except SqlglotError:
            raise InvalidInput(f"a quote that opens must close, got {shown(text)}") from None
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        sql = cls(text, tuple(tokens))
        sql._require_reasonable()
        return sql

    def _require_reasonable(self) -> None:
        if not self.tokens:
            raise InvalidInput("SQL must say something, got only comments")
        if len(self.tokens) > MOST_TOKENS:
            raise InvalidInput(f"SQL must have at most {MOST_TOKENS} words, got more")
        depth = run = unusual = 0
        for token, following in zip_longest(self.tokens, self.tokens[1:]):
            kind = token.token_type
            if kind in _FOREIGN:
                raise InvalidInput(f"{shown(token.text)} is {_FOREIGN[kind]}, which is not read")
            called = following is not None and following.token_type == TokenType.L_PAREN
            if kind == TokenType.VAR and token.text.upper() == "IF" and not called:
                raise InvalidInput("IF is a command, which is not read")
            depth += (kind in _OPENING) - (kind in _CLOSING)
            run = 0 if kind in _ENDS_A_RUN else run + 1
            unusual += kind not in _USUAL and (kind not in _TYPES or called)
            if unusual > MOST_UNUSUAL:
                raise InvalidInput(
                    f"a question has at most {MOST_UNUSUAL} words like {shown(token.text)}; a name "
                    "that is such a word is written in double quotes"
                )
            if depth > DEEPEST_BRACKETS or run > LONGEST_RUN:
                raise InvalidInput(f"SQL nests at most {DEEPEST_BRACKETS} times, got more")

    def part(self, first: int, last: int) -> SqlText:
        """The tokens from one place up to before another, with the text between them."""
        tokens = self.tokens[first:last]
        if not tokens:
            return SqlText("", ())
        return SqlText(self.text[tokens[0].start : tokens[-1].end + 1], tokens)

    def parsed(self, into: type[sge.Expr]) -> sge.Expr:
        """The tree of the text."""
        try:
            return sqlglot.parse_one(self.text, into=into)
        except ParseError as error:
            near = next((e.get("highlight") for e in error.errors if e.get("highlight")), None)
            where = "" if near is None else f" at {shown(str(near))}"
            raise InvalidInput(f"{shown(self.text)} cannot be read{where}") from None
        except SqlglotError:
            raise InvalidInput(f"{shown(self.text)} cannot be read") from None

    def quoted(self, node: sge.Expr) -> str:
        """A part of the tree as it was written, where that is found; otherwise as it reads."""
        reads = node.sql(unsupported_level=ErrorLevel.IGNORE)
        tokens = sqlglot.tokenize(reads)
        for named in (True, False):  # a function may have been written by another name
            wanted, here = _comparable(tokens, named), _comparable(self.tokens, named)
            for place in range(len(here) - len(wanted) + 1):
                if wanted and here[place : place + len(wanted)] == wanted:
                    return shown(self.part(place, place + len(wanted)).text)
        return shown(reads)

    def refused(self, node: sge.Expr, why: str) -> InvalidInput:
        """The error that names the part which is the reason."""
        return InvalidInput(f"{self.quoted(node) or shown(self.text)}: {why}")

    def arguments(
        self, node: sge.Expr, *known: str, why: Mapping[str, str] = NO_REASONS
    ) -> tuple[Any, ...]:
        """The arguments of a node by name; an error if it has any other, with the reason."""
        for name, given in node.args.items():
            if name not in known and given not in (None, False, []):
                told = given[0] if isinstance(given, list) else given
                told = told if isinstance(told, sge.Expr) else node
                raise self.refused(told, why.get(name, "this cannot be said here"))
        return tuple(node.args.get(name) for name in known)


def shown(text: str) -> str:
    """A text in one short line."""
    line = plain(" ".join(text.split()))
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"


def _comparable(tokens: Sequence[Token], named: bool) -> list[tuple[TokenType, str]]:
    """Tokens by what they mean: an operator has several signs, and a function may have several
    names, unless it is to be `named`."""
    meanings = []
    for token, following in zip_longest(tokens, tokens[1:]):
        kind, text = token.token_type, token.text
        called = following is not None and following.token_type == TokenType.L_PAREN
        loose = called and text[:1].isalpha() and not named
        if kind in (TokenType.EQ, TokenType.NEQ) or loose:
            text = ""
        meanings.append((kind, text if kind in _EXACT else text.upper()))
    return meanings
