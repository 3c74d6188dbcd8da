"""Short text for guarantees and lists of them: `100xbr:0.1`, `gauss:20`, `zcdp:0.1,0,1e-9`.

A mechanism that sees a sample is written after its rate: `1000xpoisson:0.01/gauss:1.0`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, astuple, fields
from typing import Any, get_args

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import Guarantee, Subsampled, SubsampledWithoutReplacement

#: how a sample is drawn → the guarantee of a mechanism that sees one
SAMPLES: dict[str, type[Subsampled] | type[SubsampledWithoutReplacement]] = {
    kind.notation: kind for kind in (Subsampled, SubsampledWithoutReplacement) if kind.notation
}

#: text → kind, for the others that have one
KINDS: dict[str, Callable[..., Guarantee]] = {
    kind.notation: kind
    for kind in get_args(Guarantee)
    if kind.notation is not None and kind.notation not in SAMPLES
}

_ITEM = re.compile(r"^(?:(?P<count>[^x:]+)x)?(?P<kind>[a-z]+)(?::(?P<parameters>.*))?$")


def parse_guarantee(text: str) -> Guarantee:
    """The guarantee written as `kind:parameter[,parameter…]`."""
    guarantee, count = parse_item(text)
    if count != 1 or "x" in text.split(":")[0]:
        raise InvalidInput(f"a guarantee is written without a count, got {text!r}")
    return guarantee


def parse_item(text: str) -> tuple[Guarantee, int]:
    """A guarantee and how often it is used, written as `[count x]kind:parameters`."""
    kind, count, parameters = split_item(text)
    if kind in SAMPLES:
        rate, slash, inner = (parameters or "").partition("/")
        if not slash:
            raise InvalidInput(f"{kind} needs {kind}:rate/kind:parameters, got {text!r}")
        # what cannot be sampled is refused by the guarantee itself
        sampled: Any = parse_guarantee(inner)
        return SAMPLES[kind](sampled, _number("rate", rate)), count
    names, required = _parameters(KINDS[kind])
    if parameters is None:
        raise InvalidInput(f"{kind} needs {_form(kind)}, got {text!r}")
    values = parameters.split(",")
    if not required <= len(values) <= len(names):
        raise InvalidInput(f"{kind} needs {_form(kind)}, got {text!r}")
    numbers = [_number(name, value) for name, value in zip(names, values, strict=False)]
    return KINDS[kind](*numbers), count


def split_item(text: str) -> tuple[str, int, str | None]:
    """Kind, count and the text of the parameters (None if there are none)."""
    match = _ITEM.match(text.strip())
    if match is None:
        raise InvalidInput(
            f"an item must look like 100xbr:0.1 ([count x]kind:parameters), got {text!r}"
        )
    kind = match["kind"]
    if kind not in KINDS and kind not in SAMPLES:
        known = ", ".join((*KINDS, *SAMPLES))
        raise InvalidInput(f"kind must be one of {known}, got {kind!r} in {text!r}")
    count_text = match["count"]
    if count_text is None:
        return kind, 1, match["parameters"]
    whole = count_text.isascii() and count_text.isdecimal() and len(count_text) <= 18
    if not whole or int(count_text) < 1:
        raise InvalidInput(
            f"count must be a whole number of at least 1, got {count_text!r} in {text!r}"
        )
    return kind, int(count_text), match["parameters"]


def format_guarantee(guarantee: Guarantee) -> str:
    """The text that `parse_guarantee` turns back into `guarantee`."""
    for kind, sample in SAMPLES.items():
        if isinstance(guarantee, sample):
            return f"{kind}:{guarantee.rate!r}/{format_guarantee(guarantee.guarantee)}"
    for kind, constructor in KINDS.items():
        if type(guarantee) is constructor:
            _, required = _parameters(constructor)
            values, defaults = list(astuple(guarantee)), _defaults(constructor)
            while len(values) > required and values[-1] == defaults[len(values) - 1]:
                values.pop()
            return f"{kind}:{','.join(repr(value) for value in values)}"
    return repr(guarantee)


def _parameters(constructor: Callable[..., Guarantee]) -> tuple[list[str], int]:
    """Their names, and how many of them are required."""
    names = [field.name for field in fields(constructor)]  # type: ignore[arg-type] # dataclasses
    return names, _defaults(constructor).count(MISSING)


def _defaults(constructor: Callable[..., Guarantee]) -> list[object]:
    return [field.default for field in fields(constructor)]  # type: ignore[arg-type] # dataclasses


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a number, got {text!r}") from None


def _form(kind: str) -> str:
    names, required = _parameters(KINDS[kind])
    optional = "".join(f"[,{name}" for name in names[required:]) + "]" * (len(names) - required)
    return f"{kind}:{','.join(names[:required])}{optional}"
