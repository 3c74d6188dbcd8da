"""Finite interactive systems: trees of exact probabilities, and mechanisms as such trees.

Definition 1 of [Lyu22] gives a system as the distribution of the next answer for every history
and question. Here it is a tree of exact probabilities: a node holds the questions that may be asked
and, for each answer, its probability and the system that remains. A node without questions has
halted. What remains of a conversation after some history is then simply another system.

A `Pair` is two systems of one shape: the neighbours that an adversary tries to tell apart.
`tabulate_mechanism` makes a system from the code that answers analysts, with every number that the
noise can be instead of a random one. So its privacy can be computed instead of proved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar, cast

from farthing.errors import InvalidInput, require_count
from farthing.interactive.protocol import ConversationOver, Drawing, InteractiveMechanism, Noise

QuestionSymbol: TypeAlias = Hashable
AnswerSymbol: TypeAlias = Hashable
History: TypeAlias = tuple[tuple[QuestionSymbol, AnswerSymbol], ...]
#: A deterministic adversary: what it asks next, for every history that it can meet.
AskingStrategy: TypeAlias = Mapping[History, QuestionSymbol]
#: history → question → answer → probability.
Table: TypeAlias = Mapping[History, Mapping[QuestionSymbol, Mapping[AnswerSymbol, Fraction]]]

S = TypeVar("S", bound=Hashable)

#: A number for each of the two systems.
Both: TypeAlias = tuple[Fraction, Fraction]
T = TypeVar("T")
#: Finite noise: value → probability.
NoiseLaw: TypeAlias = Mapping[int, Fraction]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: how likely it is, and the system that remains when it was given."""

    probability: Fraction
    then: FiniteSystem


@dataclass(frozen=True, slots=True)
class FiniteSystem:
    """question → answer → `Reply`. The probabilities of the answers to a question add up to 1."""

    replies: Mapping[QuestionSymbol, Mapping[AnswerSymbol, Reply]]

    def __post_init__(self) -> None:
        for question, answers in self.replies.items():
            chances = [reply.probability for reply in answers.values()]
            if not all(isinstance(chance, Fraction) and chance >= 0 for chance in chances):
                raise InvalidInput("probabilities must be fractions of at least 0")
            if sum(chances) != 1:
                raise InvalidInput(
                    f"the answers to {question!r} must have total probability 1, got {sum(chances)}"
                )
        frozen = {question: MappingProxyType(dict(a)) for question, a in self.replies.items()}
        object.__setattr__(self, "replies", MappingProxyType(frozen))

    @classmethod
    def from_table(cls, table: Table) -> FiniteSystem:
        """The system of a table; a history that is not in the table has halted."""
        reached: set[History] = set()

        def node(history: History) -> FiniteSystem:
            reached.add(history)
            return cls(
                {
                    question: {
                        answer: Reply(chance, node((*history, (question, answer))))
                        for answer, chance in answers.items()
                    }
                    for question, answers in table.get(history, {}).items()
                }
            )

        system = node(())
        if not table.keys() <= reached:
            raise InvalidInput("the table has histories that no conversation leads to")
        return system

    def to_table(self) -> Table:
        """Back to a table, without the histories at which the system has halted."""
        table: dict[History, Mapping[QuestionSymbol, Mapping[AnswerSymbol, Fraction]]] = {}

        def visit(system: FiniteSystem, history: History) -> None:
            if not system.replies:
                return
            table[history] = {
                question: {answer: reply.probability for answer, reply in answers.items()}
                for question, answers in system.replies.items()
            }
            for question, answers in system.replies.items():
                for answer, reply in answers.items():
                    visit(reply.then, (*history, (question, answer)))

        visit(self, ())
        return table

    def weight(self, history: History) -> Fraction:
        """The probability of these answers, given these questions."""
        weight, system = Fraction(1), self
        for question, answer in history:
            reply = system.replies[question][answer]
            weight, system = weight * reply.probability, reply.then
        return weight


HALTED = FiniteSystem({})


def tabulate(
    prior: Mapping[S, Fraction],
    step: Callable[[S, QuestionSymbol], Iterable[tuple[AnswerSymbol, S, Fraction]]],
    questions: Callable[[S, History], Iterable[QuestionSymbol]],
) -> FiniteSystem:
    """The system of a mechanism with a hidden state.

    `prior` is the law of the state at the start; `step` the joint law of answer and next state;
    `questions` what may be asked, nothing when the mechanism has halted; it must not tell hidden
    states apart that belong to one history. What an adversary sees is the law of the answers given
    the history: the hidden state is summed out.
    """

    def node(weights: Mapping[S, Fraction], history: History) -> FiniteSystem:
        allowed = {tuple(questions(state, history)) for state in weights}
        if len(allowed) > 1:
            raise InvalidInput("the allowed questions must follow from the earlier answers")
        return FiniteSystem({x: replies(weights, history, x) for x in allowed.pop()})

    def replies(
        weights: Mapping[S, Fraction], history: History, question: QuestionSymbol
    ) -> dict[AnswerSymbol, Reply]:
        joint: dict[AnswerSymbol, dict[S, Fraction]] = {}
        for state, weight in weights.items():
            for answer, following, chance in step(state, question):
                states = joint.setdefault(answer, {})
                states[following] = states.get(following, Fraction(0)) + weight * chance
        return {
            answer: Reply(
                total := sum(states.values(), Fraction(0)),
                node(
                    {state: weight / total for state, weight in states.items()},
                    (*history, (question, answer)),
                ),
            )
            for answer, states in joint.items()
            if any(states.values())
        }

    return node({state: Fraction(chance) for state, chance in prior.items()}, ())


def concurrent(systems: Sequence[FiniteSystem]) -> FiniteSystem:
    """COMP of [Lyu22]: question (i, x) is x for the i-th system, which sees nothing else.

    Interleavings that leave the same systems share one node, so the result has as many nodes
    as there are combinations of nodes, not of histories.
    """
    known: dict[tuple[int, ...], FiniteSystem] = {}

    def node(parts: tuple[FiniteSystem, ...]) -> FiniteSystem:
        key = tuple(id(part) for part in parts)
        if key not in known:
            known[key] = FiniteSystem(
                {
                    (index, question): {
                        answer: Reply(
                            reply.probability,
                            node((*parts[:index], reply.then, *parts[index + 1 :])),
                        )
                        for answer, reply in answers.items()
                    }
                    for index, part in enumerate(parts)
                    for question, answers in part.replies.items()
                }
            )
        return known[key]

    return node(tuple(systems))


def strategies(system: FiniteSystem) -> Iterator[AskingStrategy]:
    """Every deterministic adversary that asks until the system halts.

    There are very many of them; this is what dynamic programming is checked against. Randomised
    adversaries are averages of these, and stopping early is never better than going on and not
    looking.
    """

    def plans(node: FiniteSystem, history: History) -> Iterator[dict[History, QuestionSymbol]]:
        if not node.replies:
            yield {}
        for question, answers in node.replies.items():
            later = [
                list(plans(reply.then, (*history, (question, answer))))
                for answer, reply in answers.items()
            ]
            for chosen in product(*later):
                plan: dict[History, QuestionSymbol] = {history: question}
                for part in chosen:
                    plan |= part
                yield plan

    return plans(system, ())


def transcript_law(system: FiniteSystem, strategy: AskingStrategy) -> dict[History, Fraction]:
    """IT(A : M): the probability of every complete transcript. Impossible ones are left out."""
    law: dict[History, Fraction] = {}

    def visit(node: FiniteSystem, history: History, weight: Fraction) -> None:
        if not node.replies:
            law[history] = weight
            return
        question = strategy[history]
        for answer, reply in node.replies[question].items():
            if reply.probability > 0:
                visit(reply.then, (*history, (question, answer)), weight * reply.probability)

    visit(system, (), Fraction(1))
    return law


@dataclass(frozen=True, slots=True)
class Fork:
    """One answer: its probability in the first and in the second system, and what remains."""

    first: Fraction
    second: Fraction
    then: Pair


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """question → answer → `Fork`. Compared by identity: equal remainders share one node."""

    forks: Mapping[QuestionSymbol, Mapping[AnswerSymbol, Fork]]


def align(first: FiniteSystem, second: FiniteSystem) -> Pair:
    """The two systems side by side.

    Where an answer is impossible in one of them, what follows it there is arbitrary, because it is
    never met; the other system's continuation is used, so that both trees have one shape. What
    may be asked must not depend on the secret.
    """
    known: dict[tuple[int, int], Pair] = {}

    def node(left: FiniteSystem, right: FiniteSystem) -> Pair:
        key = (id(left), id(right))
        if key not in known:
            if left.replies.keys() != right.replies.keys():
                raise InvalidInput(
                    "both systems must allow the same questions after every history, "
                    f"got {sorted(map(repr, left.replies))} and {sorted(map(repr, right.replies))}"
                )
            known[key] = Pair({question: forks(left, right, question) for question in left.replies})
        return known[key]

    def forks(
        left: FiniteSystem, right: FiniteSystem, question: QuestionSymbol
    ) -> dict[AnswerSymbol, Fork]:
        ours, theirs = left.replies[question], right.replies[question]
        result = {}
        for answer in (*ours, *(answer for answer in theirs if answer not in ours)):
            p = ours[answer].probability if answer in ours else Fraction(0)
            q = theirs[answer].probability if answer in theirs else Fraction(0)
            if p == 0 and q == 0:
                continue
            after_ours = ours[answer].then if p > 0 else theirs[answer].then
            after_theirs = theirs[answer].then if q > 0 else ours[answer].then
            result[answer] = Fork(p, q, node(after_ours, after_theirs))
        return result

    return node(first, second)


def transcripts(pair: Pair) -> Iterator[tuple[History, Both]]:
    """Every complete transcript with the probability of its answers in both systems."""

    def visit(node: Pair, history: History, weights: Both) -> Iterator[tuple[History, Both]]:
        if not node.forks:
            yield history, weights
        for question, forks in node.forks.items():
            for answer, fork in forks.items():
                reached = (weights[0] * fork.first, weights[1] * fork.second)
                yield from visit(fork.then, (*history, (question, answer)), reached)

    return visit(pair, (), (Fraction(1), Fraction(1)))


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
    """Whether the question is still accepted: a part of `Concurrent` may be over before others."""
    try:
        _follow(mechanism.reply(state, question), ())
    except ConversationOver:
        return False
    return True
