"""Which keys of a unit are kept: the first ones in an order of the unit's own, the same anywhere.

    place of a key in a unit = u·k mod p

u is a keyed digest of the unit and k one of the key, each from 1 to 2^28; p = 2^31 − 1 is prime.
Keys in one place go by themselves. So a digest is taken once for a unit and once for a key, not
once for each pair, on which bounding used to spend most of its time. Over the secret the numbers
of the keys are exchangeable, so no key is preferred; over the units u moves the keys around. The
digest is MD5 because DuckDB, Spark and PostgreSQL all have it and agree on it; privacy does not
rest on it: the order depends on the secret, the unit and its own keys alone, whatever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farthing.engine.sql.functions import keyed_number
from farthing.engine.sql.keys import key_text, value_text
from farthing.errors import InvalidInput

#: Products of two digests stay below 2^63; their remainders fill 31 bits.
PRIME = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Order:
    """The key of the digests, the kind of the unit, and the kinds of the columns of the key."""

    secret: str
    unit_kind: str
    kinds: Sequence[str]

    def __post_init__(self) -> None:
        """The secret is the only text of ours that varies: letters and digits alone."""
        if not (self.secret.isascii() and self.secret.isalnum()):
            raise InvalidInput("the key of the digest must be letters and digits")

    def late(self, pairs: Any, totals: Any, limit: int) -> Any:
        """The pairs that come after the first `limit` of their unit.

        Only units above the limit are ranked; on most data they are few. `totals` has every key
        once, so that its digest is taken there; a key with a missing part is equal to none and
        gets its digest here.
        """
        import ibis

        columns = [f"key{i}" for i in range(len(self.kinds))]
        many = (
            pairs.group_by(over="who")
            .aggregate(keys=lambda t: t.count())
            .filter(lambda t: t["keys"] > limit)
            .select("over", of_unit=lambda t: self._number(value_text(t.over, self.unit_kind)))
        )
        numbers = {f"known{name}": totals[name] for name in columns}
        known = totals.select(of_key=self._of_key(totals, columns), **numbers)
        rest = pairs.join(many, pairs.who == many.over)
        rest = rest.left_join(known, [rest[name] == known[f"known{name}"] for name in columns])
        of_key = ibis.coalesce(rest.of_key, self._of_key(rest, columns))
        rest = rest.select(*pairs.columns, order=rest.of_unit * of_key % PRIME)
        placed = _placed(rest, columns, ibis.row_number())
        return placed.filter(placed.place >= limit).select(
            *(name for name in pairs.columns if name != "who")
        )

    def first(self, rows: Any, columns: Sequence[str], place: Any, limit: int) -> Any:
        """The rows with the first `limit` keys of their unit; `place` counts keys from 0."""
        of_unit = self._number(value_text(rows.who, self.unit_kind))
        ordered = rows.mutate(order=of_unit * self._of_key(rows, columns) % PRIME)
        placed = _placed(ordered, columns, place)
        return placed.filter(placed.place < limit).drop("order", "place")

    def _of_key(self, table: Any, columns: Sequence[str]) -> Any:
        return self._number(key_text([table[name] for name in columns], self.kinds))

    def _number(self, text: Any) -> Any:
        """From 1 to 2^28."""
        import ibis

        return keyed_number(ibis.literal(self.secret) + text) + 1


def _placed(rows: Any, columns: Sequence[str], place: Any) -> Any:
    """With the place of each key in its unit: by its number, then by itself."""
    import ibis

    ties = [ibis.asc(rows[name], nulls_first=True) for name in columns]
    return rows.mutate(place=place.over(group_by=rows.who, order_by=[rows.order, *ties]))
