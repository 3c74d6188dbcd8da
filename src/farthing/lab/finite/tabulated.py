"""Small mechanisms as finite systems, so that their privacy can be computed instead of proved.

`tabulate_mechanism` runs the code that answers analysts, with every number that the noise can be
instead of a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar, cast

from farthing.errors import InvalidInput, require_count
from farthing.interactive.protocol import ConversationOver, Drawing, InteractiveMechanism, Noise
from farthing.lab.finite.systems import (
    AnswerSymbol,
    FiniteSystem,
    History,
    QuestionSymbol,
    tabulate,
)

T = TypeVar("T")
S = TypeVar("S", bound=Hashable)

#: Finite noise: value → probability.
NoiseLaw: TypeAlias = Mapping[int, Fraction]


def geometric_noise(ratio: Fraction, bound: int) -> dict[int, Fraction]:
    """Discrete Laplace noise with a = e^(−1/scale) = ratio, conditioned on |noise| ≤ bound."""
    if not isinstance(ratio, Fraction) or not 0 < ratio < 1:
        raise InvalidInput(f"ratio must be a fraction between 0 and 1, got {ratio!r}")
    reach = require_count("bound", bound)
    weights = {z: ratio ** abs(z) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def randomized_response(bits: Sequence[int], factor: Fraction, rounds: int) -> FiniteSystem:
    """Question i is bit i, answered truthfully with odds factor : 1; `rounds` answers in all."""
    truthful = Fraction(factor) / (1 + Fraction(factor))
    known = dict(enumerate(bits))

    def step(_: None, question: QuestionSymbol) -> Iterator[tuple[AnswerSymbol, None, Fraction]]:
        bit = known[cast(int, question)]
        yield bit, None, truthful
        yield 1 - bit, None, 1 - truthful

    return tabulate(
        {None: Fraction(1)}, step, lambda _, history: known if len(history) < rounds else ()
    )


def tabulate_mechanism(
    mechanism: InteractiveMechanism[S, Any, Any],
    questions: Mapping[Hashable, Any],
    law: Callable[[Noise], NoiseLaw],
    rounds: int,
) -> FiniteSystem:
    """The system of a mechanism on one dataset, asked up to `rounds` questions.

    `questions` gives what is asked for each name (the true numbers of this dataset are inside); an
    adversary knows the names. `law` replaces each noise by a finite one.
    """
    require_count("rounds", rounds)

    def step(state: S, name: QuestionSymbol) -> Iterator[tuple[AnswerSymbol, S, Fraction]]:
        for (answer, after), chance in outcomes(
            lambda: mechanism.reply(state, questions[name]), law
        ):
            yield answer, after, chance

    def allowed(state: S, history: History) -> Iterable[QuestionSymbol]:
        if len(history) == rounds or mechanism.halted(state):
            return ()
        return [name for name, asked in questions.items() if _answered(mechanism, state, asked)]

    prior: dict[S, Fraction] = {}
    for state, chance in outcomes(mechanism.begin, law):
        prior[state] = prior.get(state, Fraction(0)) + chance
    return tabulate(prior, step, allowed)


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    result: T


def outcomes(
    start: Callable[[], Drawing[T]], law: Callable[[Noise], NoiseLaw]
) -> Iterator[tuple[T, Fraction]]:
    """Every result of a computation that asks for noise, with its probability.

    The computation is run again from its start for every way in which the noise can fall.
    """
    pending: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while pending:
        numbers, chance = pending.pop()
        reached = _follow(start(), numbers)
        if isinstance(reached, _Done):
            yield reached.result, chance
        else:
            pending += [((*numbers, z), chance * p) for z, p in law(reached).items()]


def _follow(drawing: Drawing[T], numbers: Sequence[int]) -> Noise | _Done[T]:
    """The noise that is asked for after these numbers, or the result."""
    try:
        noise = next(drawing)
        for number in numbers:
            noise = drawing.send(number)
    except StopIteration as done:
        return _Done(done.value)
    return noise


def _answered(mechanism: InteractiveMechanism[S, Any, Any], state: S, question: object) -> bool:
    """Whether the question is still taken: a part of `Concurrent` may be over before the rest."""
    try:
        _follow(mechanism.reply(state, question), ())
    except ConversationOver:
        return False
    return True
