"""What an Opacus accountant has recorded: plain triples, so Opacus itself is not needed."""

from __future__ import annotations

from collections.abc import Iterable

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import Gaussian, Guarantee, Subsampled


def from_opacus(history: Iterable[tuple[float, float, int]]) -> list[tuple[Guarantee, int]]:
    """The list behind `accountant.history`: (noise_multiplier, sample_rate, steps), one each.

    For add/remove neighbours and Poisson sampling, which is what Opacus assumes. Training steps are
    chosen from earlier ones with parameters fixed in advance: `compose` with its usual adaptivity.
    """
    found: list[tuple[Guarantee, int]] = []
    for entry in history:
        if not isinstance(entry, tuple | list) or len(entry) != 3:
            raise InvalidInput(
                f"an entry must be (noise_multiplier, sample_rate, steps), got {entry!r:.60}"
            )
        noise, rate, steps = entry
        if require_count("steps", steps) > 0:
            found.append((Subsampled(Gaussian(noise), rate), steps))
    return found
