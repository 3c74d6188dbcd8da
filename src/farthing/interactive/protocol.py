"""Interactive mechanisms, conversations with them, and several conversations at once.

A mechanism is a frozen description. What it remembers is a frozen state of plain numbers, which the
holder of the conversation keeps. `begin` and `reply` are generators: they yield the noise they need
and are sent the number drawn. So the same code runs with exact random numbers, with every possible
number (`tests/interactive/finite`), and inside `Concurrent`, which is COMP of [Lyu22].

A conversation is charged in full when it is opened. All noise that later answers depend on is in
its state, and the state is JSON: a holder that stores it before giving an answer never draws twice.
The state is secret. An analyst who sees the noise sees the data.

A conversation may be charged only as what a concurrent composition theorem covers. Each use of a
guarantee takes one item of the tariff. Several small items do not pay for one large one, because
their composition is weaker than the large guarantee at every ε but the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import FarthingError, InvalidInput, Unsupported, require_count
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    Guarantee,
    PureDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms.noise.discrete import DiscreteLaplaceNoise
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.protocol import Uses

Noise: TypeAlias = DiscreteLaplaceNoise | RoundedGaussianNoise
#: How many numbers are drawn at a time at most.
LARGEST_BLOCK = 1024

T = TypeVar("T")
State = TypeVar("State")
Asked = TypeVar("Asked", contravariant=True)
Told = TypeVar("Told", covariant=True)
#: A computation that asks for noise.
Drawing: TypeAlias = Generator[Noise, int, T]
Json: TypeAlias = dict[str, Any]
#: One state per part.
States: TypeAlias = tuple[Any, ...]


def noise_shifted_by(epsilon: float, shift: int) -> Noise:
    """Noise whose probabilities change by at most the factor e^ε when it is shifted by `shift`."""
    return DiscreteLaplaceNoise(shift / Fraction(epsilon))


def drawn(noise: Noise) -> int:
    """One exact draw. Nothing is drawn ahead: a number kept for later could be used twice."""
    return int(noise.draw(1, system_bits())[0])


class Draws:
    """Exact draws in blocks, for several questions that are answered in one call.

    It lives as long as that call. Numbers that are left over are dropped with it, so that none can
    be used twice.
    """

    def __init__(self) -> None:
        self._bits = system_bits()
        # by id: hashing costs more than a draw
        self._kinds: dict[int, tuple[Noise, list[int]]] = {}
        self._block = 4

    def __call__(self, noise: Noise) -> int:
        """The next number, used once."""
        known = self._kinds.get(id(noise))
        if known is None:
            known = self._kinds[id(noise)] = noise, []
        left = known[1]
        if not left:
            self._block = min(2 * self._block, LARGEST_BLOCK)
            left.extend(noise.draw(self._block, self._bits).tolist())
        return left.pop()


class ConversationOver(FarthingError):
    """The conversation was closed, or has given all the answers that it was charged for."""


class InteractiveMechanism(Protocol[State, Asked, Told]):
    """A mechanism that is asked many times and charged once."""

    @property
    def guarantees(self) -> Uses:
        """The price of the whole conversation, whatever is asked."""

    def begin(self) -> Drawing[State]:
        """Draws the noise of the opening, and gives the first state."""

    def reply(self, state: State, question: Asked, /) -> Drawing[tuple[Told, State]]:
        """The answer and the next state."""

    def halted(self, state: State, /) -> bool:
        """Whether nothing more can be asked. It depends on earlier answers only."""

    def state_to_json(self, state: State, /) -> Json:
        """The state as plain data."""

    def state_from_json(self, data: Json, /) -> State:
        """Back from plain data; InvalidInput for anything else."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a watching mechanism.

    `positive`: the number exceeds its threshold, or the guess is wrong. `value`: the number with
    fresh noise, where numbers were bought and the answer is positive.
    """

    positive: bool
    value: int | None = None


class Conversation(Generic[State, Asked, Told]):
    """A mechanism that is open: its state, how often it was asked, and whether it was closed."""

    __slots__ = ("_asked", "_closed", "_mechanism", "_state")

    def __init__(self, mechanism: InteractiveMechanism[State, Asked, Told]) -> None:
        """Open it: the noise of the opening is drawn now.

        Unsupported if no theorem lets conversations be sold as what the mechanism promises.
        """
        require_chargeable(mechanism.guarantees)
        self._mechanism = mechanism
        self._state = run(mechanism.begin())
        self._asked = 0
        self._closed = False

    @property
    def mechanism(self) -> InteractiveMechanism[State, Asked, Told]:
        """What was opened."""
        return self._mechanism

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._asked

    @property
    def over(self) -> bool:
        """Whether it was closed or has halted."""
        return self._closed or self._mechanism.halted(self._state)

    def ask(self, question: Asked) -> Told:
        """One answer. After an error the conversation is unchanged."""
        if self.over:
            raise ConversationOver("nothing more can be asked: the conversation is over")
        answer, self._state = run(self._mechanism.reply(self._state, question))
        self._asked += 1
        return answer

    def ask_many(self, questions: Iterable[Asked]) -> list[Told]:
        """Answers one after the other, up to the one with which the conversation halts.

        After an error the conversation is unchanged, and no question was answered.
        """
        if self.over:
            raise ConversationOver("nothing more can be asked: the conversation is over")
        state, told, draw = self._state, [], Draws()
        for question in questions:
            if self._mechanism.halted(state):
                break
            answer, state = run(self._mechanism.reply(state, question), draw)
            told.append(answer)
        self._state = state
        self._asked += len(told)
        return told

    def close(self) -> None:
        """No more questions are accepted. There is no refund."""
        self._closed = True

    def to_json(self) -> Json:
        """Everything that a later answer depends on. Secret: it holds the noise."""
        return {
            "state": self._mechanism.state_to_json(self._state),
            "asked": self._asked,
            "closed": self._closed,
        }

    @classmethod
    def from_json(
        cls, mechanism: InteractiveMechanism[State, Asked, Told], data: Json
    ) -> Conversation[State, Asked, Told]:
        """The conversation in its stored state; nothing is drawn."""
        require_keys(data, "state", "asked", "closed")
        if not isinstance(data["closed"], bool):
            raise InvalidInput("closed must be true or false in a stored conversation")
        restored = cls.__new__(cls)
        restored._mechanism = mechanism
        restored._state = mechanism.state_from_json(data["state"])
        restored._asked = require_whole(data["asked"], at_least=0)
        restored._closed = data["closed"]
        return restored

    def __repr__(self) -> str:
        """Without the state: it is secret."""
        over = "over" if self.over else "open"
        return f"Conversation({self._mechanism!r}, asked={self._asked}, {over})"


def run(drawing: Drawing[T], draw: Callable[[Noise], int] = drawn) -> T:
    """Give a computation the exact random numbers it asks for."""
    try:
        noise = next(drawing)
        while True:
            noise = drawing.send(draw(noise))
    except StopIteration as done:
        result: T = done.value
        return result


def require_keys(data: object, *names: str) -> None:
    """A stored object has exactly these keys."""
    if not isinstance(data, dict) or set(data) != set(names):
        raise InvalidInput(f"a stored object must have exactly the keys {', '.join(names)}")


def require_whole(value: object, *, at_least: int | None = None) -> int:
    """A whole number. The message does not repeat the value, which may be personal data."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput("the number must be whole")
    if at_least is not None and value < at_least:
        raise InvalidInput(f"the number must be at least {at_least}")
    return value


Part: TypeAlias = InteractiveMechanism[Any, Any, Any]
#: A conversation with any mechanism.
OpenConversation: TypeAlias = Conversation[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Interactive mechanisms whose questions are interleaved as the analyst likes.

    The question (i, x) is x for part i, counted from 0. A part sees only its own questions and
    answers. The price is that of the parts: interleaving gains nothing
    (docs/theory/concurrency.md). It is an interactive mechanism itself, so it can be nested.
    """

    parts: Sequence[Part]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise InvalidInput("at least one interactive mechanism is needed, got none")
        object.__setattr__(self, "parts", parts)

    @property
    def guarantees(self) -> Uses:
        """The items of all parts."""
        return tuple(item for part in self.parts for item in part.guarantees)

    def begin(self) -> Drawing[States]:
        """Open every part."""
        states = []
        for part in self.parts:
            states.append((yield from part.begin()))
        return tuple(states)

    def reply(self, state: States, question: tuple[int, Any], /) -> Drawing[tuple[Any, States]]:
        """Pass the question to its part."""
        index, inner = question
        if require_count("the number of a part", index) >= len(self.parts):
            raise InvalidInput(f"there are {len(self.parts)} parts, counted from 0; got {index}")
        part = self.parts[index]
        if part.halted(state[index]):
            raise ConversationOver(f"nothing more can be asked: part {index} is over")
        answer, after = yield from part.reply(state[index], inner)
        return answer, (*state[:index], after, *state[index + 1 :])

    def halted(self, state: States, /) -> bool:
        """When every part has."""
        return all(p.halted(inner) for p, inner in zip(self.parts, state, strict=True))

    def state_to_json(self, state: States, /) -> Json:
        """The states of the parts in order."""
        pairs = zip(self.parts, state, strict=True)
        return {"parts": [part.state_to_json(inner) for part, inner in pairs]}

    def state_from_json(self, data: Json, /) -> States:
        """The same, checked."""
        require_keys(data, "parts")
        stored = data["parts"]
        if not isinstance(stored, list) or len(stored) != len(self.parts):
            raise InvalidInput(f"a stored conversation must have {len(self.parts)} parts")
        pairs = zip(self.parts, stored, strict=True)
        return tuple(part.state_from_json(inner) for part, inner in pairs)


def require_chargeable(guarantees: Uses) -> Uses:
    """The guarantees, or Unsupported with the reason (docs/theory/concurrency.md, section 6).

    This is about the guarantee of a whole conversation. A one-shot mechanism between its answers
    may have any guarantee.
    """
    for guarantee, _ in guarantees:
        reason = _refusal(guarantee)
        if reason is not None:
            raise Unsupported(
                f"a conversation cannot be sold as {format_guarantee(guarantee)}: {reason}"
            )
    return guarantees


def _refusal(guarantee: Guarantee) -> str | None:
    match guarantee:
        case BoundedRange(epsilon=epsilon):
            return (
                "bounded range is about one answer, whose interval of losses is chosen at one "
                "moment, and no theorem covers a choice that is spread over a conversation; "
                f"use dp:{epsilon!r}, which it implies"
            )
        case ZeroConcentratedDP(rho=rho, delta=delta) if delta > 0:
            return (
                "an event of probability delta that depends on the adversary has no decomposition; "
                f"if the leak is part of the mechanism, sell adp:0,{delta!r} and zcdp:{rho!r} apart"
            )
        case ConcentratedDP(mu=mu, tau=tau):
            return (
                "the theorems cover Renyi divergences; use zcdp with "
                f"rho = {tau**2 / 2:g} and xi = {mu - tau**2 / 2:g}, which it implies"
            )
        case _:
            return None


def cheapest_items(tariff: Tariff, uses: Uses) -> dict[str, int]:
    """The cheapest items that pay for a conversation, one for each use of a guarantee."""
    bought: Counter[str] = Counter()
    for guarantee, times in require_chargeable(uses):
        fitting = [n for n, (sold, _) in tariff.items.items() if loss_of(sold).covers(guarantee)]
        if not fitting:
            raise InvalidInput(
                f"the conversation needs an item that covers {format_guarantee(guarantee)}, "
                "and the tariff sells none"
            )
        bought[min(fitting, key=lambda name: _cost(tariff, name))] += times
    return dict(bought)


def require_paid(tariff: Tariff, items: Mapping[str, int], uses: Uses) -> None:
    """InvalidInput unless the items are as many as the uses and cover one use each.

    The largest uses choose first. An item that covers a use also covers the smaller uses of its
    kind, so no choice prevents a later one.
    """
    left = dict(items)
    for guarantee, times in sorted(require_chargeable(uses), key=_size, reverse=True):
        wanted = times
        for name in left:
            if loss_of(tariff.items[name][0]).covers(guarantee):
                taken = min(wanted, left[name])
                left[name] -= taken
                wanted -= taken
        if wanted:
            raise InvalidInput(f"the items do not pay for {times} x {format_guarantee(guarantee)}")
    if any(left.values()):
        raise InvalidInput("more items are bought than the conversation uses")


def _cost(tariff: Tariff, name: str) -> tuple[int, int, str]:
    price = tariff.price(name)
    return price.farthings, price.delta_units, name


def _size(use: tuple[Guarantee, int]) -> float:
    return use[0].epsilon if isinstance(use[0], PureDP | ApproximateDP) else 0.0
