"""The exact law of what a program draws, found by driving it with chosen words, whatever the
program says of itself.

A program that draws is an automaton that reads 64-bit words: each word moves it to another state,
until it gives its outcome. If the law of every move is known, that of the outcome follows exactly.
`law` learns this automaton from outside, as Angluin's L* does ("Learning regular sets from queries
and counterexamples", 1987):

- A state is known by its behaviour: what comes out, and after how many words, for each of some
  continuations. These are random words, some behind a head of zeros or of ones, where programs that
  compare words with thresholds differ.
- The words of a state fall into pieces of one behaviour each. Random words and the ends of the
  range are looked at first; between two neighbours of different behaviour the change is found by
  bisection. A program that compares a word with k thresholds, or divides it by a number, has at
  most k + 1 intervals of words, and one more for every tie that another word decides: so pieces are
  few, and every one of them is found unless it is both short and hidden between two of the same
  behaviour. No map is presumed to be monotone: pieces may repeat a behaviour, and random words
  inside every piece must share it.
- Two words of one piece, and two prefixes of one state, are only presumed to be alike. So both ends
  and a random word of every piece are compared, and so are both ends of every piece of a state
  after every other move that leads there. Where one differs, the continuation that showed it is
  added, and learning begins again.
- Where programs treat the bits of a word one by one (`bernoulli_bits`), pieces are not intervals
  but patterns of the bits that matter; ``bits`` says of which words, and how many bits. That no
  other bit matters is probed by random ones.

What remains is the law of an absorbing chain with exact weights, which is solved in fractions. A
redrawn word is a move back to a state that is known: it costs no more than another. A state that is
reached with a probability below 2^-100, such as where a tie is followed by another, is not
explored: its probability is reported as `UNSETTLED`.
"""

import heapq
from bisect import bisect_right, insort
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np

from tests.tape import WORD

UNSETTLED = "unsettled"
NEGLIGIBLE = Fraction(1, 1 << 100)

_HEADS: tuple[list[int], ...] = ([], [], [], [], [0] * 4, [WORD - 1] * 2)
_MOST_WORDS = 3000
_MOST_PIECES = 5000


class ScriptedGenerator(np.random.Generator):
    """A generator whose words are given: what `rng` may be everywhere, so that no program
    has to be changed.
    """

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def play(self, prefix, continuation):
        self.prefix, self.continuation, self.used = prefix, continuation, 0
        return self

    def integers(self, low, high, size, dtype):  # type: ignore[override]  # as words are drawn
        assert (low, high, dtype) == (0, WORD, np.uint64), "something else than words was drawn"
        start, self.used = self.used, self.used + size
        assert self.used < _MOST_WORDS, "the draw does not end"
        split = len(self.prefix)
        words = self.prefix[start : self.used]
        rest = slice(max(start - split, 0), max(self.used - split, 0))
        return np.array([*words, *self.continuation[rest]], dtype=np.uint64)


def stream(seed, head=()):
    """A continuation: given words and then random ones."""
    random = Random(seed)
    return [*head, *(random.getrandbits(64) for _ in range(_MOST_WORDS))]


class _Counterexample(Exception):
    pass


class _Learner:
    def __init__(self, draw, continuations, bits, given=(), negligible=NEGLIGIBLE):
        self.draw, self.continuations = draw, continuations
        self.bits, self.given, self.negligible = bits, list(given), negligible
        self.changes, self.tape, self.random = [], ScriptedGenerator(), Random(7)

    def run(self, prefix, continuation):
        outcome = self.draw(self.tape.play(prefix, continuation))
        return outcome, self.tape.used - len(prefix)

    def behaviour(self, prefix):
        """The outcome alone if it is known after the prefix; a tuple of outcomes and numbers of
        words if not.
        """
        first = self.run(prefix, self.continuations[0])
        if first[1] <= 0:
            return ("end", first[0])
        return (first, *(self.run(prefix, more) for more in self.continuations[1:]))

    def pieces(self, prefix):
        """(weight, words known to be in the piece, behaviour) of every piece of the word after a
        prefix.
        """
        first, planes, width = self.bits
        if first <= len(prefix) < first + planes:
            return [self.pattern(prefix, pattern, width) for pattern in range(1 << width)]
        grid = {0, WORD - 1, *(self.random.getrandbits(64) for _ in range(12))}
        known = {word: self.behaviour([*prefix, word]) for word in grid}
        found = sorted(grid)
        ends = [*pairwise(found)]
        starts = [0]
        while ends:
            low, high = ends.pop()
            if known[low] == known[high]:
                continue
            if high == low + 1:
                starts.append(high)
                assert len(starts) < _MOST_PIECES, "not piecewise constant"
                insort(self.changes, high)
                continue
            between = self.between(low, high)
            known.update((word, self.behaviour([*prefix, word])) for word in between)
            ends += pairwise([low, *between, high])
        starts.sort()
        result = []
        for first, last in zip(starts, [*(s - 1 for s in starts[1:]), WORD - 1], strict=True):
            inner = self.random.randint(first, last)
            if self.behaviour([*prefix, inner]) != known[first]:
                return self.pieces(prefix)  # a change was hidden; random words find it again
            words = sorted({first, inner, last})
            result.append((Fraction(last + 1 - first, WORD), words, known[first]))
        return result

    def between(self, low, high):
        """Where to look for a change: on both sides of one that another state has, or in the
        middle.
        """
        first, last = bisect_right(self.changes, low), bisect_right(self.changes, high)
        middle = self.changes[(first + last) // 2] if first < last else (low + high) // 2
        return [word for word in (middle - 1, middle) if low < word < high]

    def pattern(self, prefix, pattern, width):
        high = [self.random.getrandbits(64 - width) << width for _ in range(2)]
        words = [pattern | rest for rest in (0, WORD - (1 << width), *high)]
        behaviours = [self.behaviour([*prefix, word]) for word in words]
        assert len(set(behaviours)) == 1, "bits that should not matter do"
        return Fraction(1, 1 << width), words, behaviours[0]

    def law(self):
        root = self.behaviour(self.given)
        if root[0] == "end":
            return {root[1]: Fraction(1)}
        prefixes, order = {root: [self.given]}, 0
        moves: dict[tuple, list] = {}
        queue = [(-1, order, root)]
        while queue:
            mass, _, state = heapq.heappop(queue)
            if state in moves:
                continue
            rep = prefixes[state][0]
            if -mass < self.negligible:
                moves[state] = [(Fraction(1), [], ("end", UNSETTLED))]
                continue
            moves[state] = self.pieces(rep)
            for weight, words, after in moves[state]:
                if after[0] != "end":
                    prefixes.setdefault(after, []).append([*rep, self.random.choice(words)])
                    order += 1
                    heapq.heappush(queue, (mass * weight, order, after))
        for state, found in prefixes.items():
            for prefix in found[1:]:
                self.compare(prefix, moves[state])
        return _absorbed(root, moves)

    def compare(self, prefix, moves):
        """Every piece must be one after another prefix of the same state as well."""
        for _, words, after in moves:
            for word in {*words[:1], *words[-1:]}:
                found = self.behaviour([*prefix, word])
                if found == after:
                    continue
                differ = zip(self.continuations, found, after, strict=False)
                self.continuations.append([word, *next(more for more, f, a in differ if f != a)])
                raise _Counterexample


def _absorbed(root, moves):
    """The law of the outcome: states are eliminated, one by one, the last found first."""
    chance: dict[tuple, dict[tuple, Fraction]] = {}
    for state, pieces in moves.items():
        chance[state] = defaultdict(Fraction)
        for weight, _, after in pieces:
            chance[state][after] += weight
    for state in reversed(list(moves)):
        row = chance.pop(state)
        stays = row.pop(state, Fraction(0))
        assert stays < 1, "the draw does not end"
        row = {after: weight / (1 - stays) for after, weight in row.items()}
        if state == root:
            assert all(after[0] == "end" for after in row)
            return {after[1]: weight for after, weight in row.items()}
        for other in chance.values():
            if through := other.pop(state, 0):
                for after, weight in row.items():
                    other[after] += through * weight
    raise AssertionError


class _BitLearner(_Learner):
    """Of one bit that each word has one bit for: how many words are read depends on the other bits,
    and says nothing.
    """

    def behaviour(self, prefix):
        outcomes = tuple(self.run(prefix, more)[0] for more in self.continuations)
        return ("end", outcomes[0]) if len(set(outcomes)) == 1 else (len(prefix), outcomes)


def law(draw, bits=(0, 0, 0), given=(), negligible=NEGLIGIBLE):
    """The exact law of ``draw(rng)``, a function whose outcome can be hashed: {outcome: Fraction}.

    ``bits`` = (first, planes, width): of ``planes`` words from the first on only the lowest
    ``width`` bits matter. ``given`` are the first words: public coins, given which the law is.
    States of a probability below ``negligible`` are not explored.
    """
    continuations = [stream(seed, head) for seed, head in enumerate(_HEADS)]
    for _ in range(20):
        try:
            return _Learner(draw, continuations, bits, given, negligible).law()
        except _Counterexample:
            continue
    raise AssertionError("no automaton of few states")


def law_of_bit(draw):
    """The exact law of ``draw(rng)``, a bit that the lowest bits of up to 64 words decide, one
    after the other.

    That it is decided is seen from continuations by zeros and by ones, whatever the other bits are.
    """
    heads: tuple[list[int], ...] = ([], [0] * 64, [WORD - 1] * 64, [WORD - 2] * 64, [1] * 64)
    continuations = [stream(seed, head) for seed, head in enumerate(heads)]
    return _BitLearner(draw, continuations, (0, 64, 1)).law()
