"""Every oracle keeps the contract; and the closed forms of the literature hold."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    RR,
    SUE,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    NotIdentifiable,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.algebra.finite_field import Field
from frequency.algebra.hash_functions import PublicBits, features
from frequency.core.oracle import CellOracle
from mechdesign import Mechanism, Privacy, PrivacyViolation, named
from tests.contracts.oracle import (
    LN3,
    OracleContract,
    SketchContract,
    Twin,
    choice_words,
    close,
    codes,
    enumerated,
    gf64,
    moments,
    planes,
    positions,
    public_bit,
    rejected_words,
    reports_of,
    subset_bytes,
    uniform_words,
)
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD


def weights_of(oracle, *names):
    """Published integer weights."""
    return [int(oracle.parameters[name]) for name in names]


def subsets(items):
    return [chosen for size in range(len(items) + 1) for chosen in combinations(items, size)]


# ----------------------------------------------------------------------------------------- direct


class TestGRR(OracleContract):
    """Pr[y | v] is truth for y = v, lie for every other y (thesis 2.4.2)."""

    make = staticmethod(GRR)

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        items = range(oracle.domain)
        return Twin(
            reports_of(oracle, [(y,) for y in items]),
            [[Fraction(truth if y == v else lie, WORD) for v in items] for y in items],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        if oracle.domain > 1:
            for v in range(oracle.domain):
                for word, told in choice_words(oracle.domain, truth, lie):
                    yield v, [word], ((v + told) % oracle.domain,)


class TestRR(TestGRR):
    domains, big_domains = (2,), ()

    def make(self, domain, epsilon):
        # The suite asks for other domains too; those are GRR's.
        return RR(domain, epsilon) if domain == 2 else GRR(domain, epsilon)

    def test_is_grr_for_two_items(self):
        binary, general = RR(2, 1.0), GRR(2, 1.0)
        assert {**binary.parameters, "protocol": "GRR"} == general.parameters
        assert binary.mechanism == general.mechanism
        assert binary.audit() == general.audit()
        values = np.arange(1000) % 2
        mine, theirs = (
            oracle.privatize(values, np.random.default_rng(0)) for oracle in (binary, general)
        )
        assert mine.tobytes() == theirs.tobytes()
        assert binary.variance(10, 0.3) == general.variance(10, 0.3)

    @pytest.mark.parametrize("domain", [1, 3, 1000])
    def test_other_domains(self, domain):
        with pytest.raises(ValueError, match="RR is for two items"):
            RR(domain, 1.0)


class UnaryContract(OracleContract):
    """Every bit by itself: 1 with probability p for the own item, q for others."""

    def twin(self, oracle):
        p, q = (Fraction(w, WORD) for w in weights_of(oracle, "p", "q"))
        sets = subsets(range(oracle.domain))

        def chance(chosen, v):
            chances = [p if x == v else q for x in range(oracle.domain)]
            return math.prod(o if x in chosen else 1 - o for x, o in enumerate(chances))

        rows = [(subset_bytes(chosen, oracle.domain),) for chosen in sets]
        return Twin(
            reports_of(oracle, rows),
            [[chance(chosen, v) for v in range(oracle.domain)] for chosen in sets],
        )

    def tapes(self, oracle):
        p, q = weights_of(oracle, "p", "q")
        for v in range(oracle.domain):
            others = set(range(oracle.domain)) - {v}
            for number, own in product((q - 1, q, 0, WORD - 1), (p - 1, p, 0, WORD - 1)):
                if number in (q - 1, q):
                    chosen = (others if number < q else set()) | ({v} if own < p else set())
                    yield v, [*planes(number, q), own], (subset_bytes(chosen, oracle.domain),)


class TestSUE(UnaryContract):
    make = staticmethod(SUE)


class TestOUE(UnaryContract):
    make = staticmethod(OUE)


class TestSubsetSelection(OracleContract):
    """Sets of k items: Pr is p / C(D-1, k-1) for those with the own item, (1-p) / C(D-1, k) for the
    others (Ye and Barg 2018).
    """

    make = staticmethod(SubsetSelection)

    def twin(self, oracle):
        (inclusion,) = weights_of(oracle, "inclusion")
        k, domain, p = oracle.parameters["size"], oracle.domain, Fraction(inclusion, WORD)
        sets = list(combinations(range(domain), k))

        def chance(chosen, v):
            return (
                p / math.comb(domain - 1, k - 1)
                if v in chosen
                else (1 - p) / math.comb(domain - 1, k)
            )

        rows = [(subset_bytes(chosen, domain),) for chosen in sets]
        return Twin(
            reports_of(oracle, rows),
            [[chance(chosen, v) for v in range(domain)] for chosen in sets],
        )

    def test_thresholds_are_where_the_weights_say(self, case, monkeypatch):
        """The word after the independent bits decides whether the own item is in the set."""
        oracle = self.make(*case)
        (inclusion,) = weights_of(oracle, "inclusion")
        monkeypatch.setattr(
            "frequency.oracles.subset_selection.bernoulli_bits",
            lambda size, numerator, source: np.zeros(size, dtype=np.uint64),
        )
        for v, word in product(range(oracle.domain), (0, inclusion - 1, inclusion, WORD - 1)):
            if word < WORD and oracle.domain > 1:
                rest = np.random.default_rng(0)
                words = [np.array([word], dtype=np.uint64)]

                def source(size, words=words, rest=rest):
                    return (
                        words.pop() if words else rest.integers(0, WORD, size=size, dtype=np.uint64)
                    )

                monkeypatch.setattr(
                    "frequency.core.channel.bit_source", lambda rng, source=source: source
                )
                bits = np.unpackbits(oracle.privatize([v])["bits"][0], bitorder="little")
                assert bits[v] == (word < inclusion)
                assert bits.sum() == oracle.size

    @pytest.mark.parametrize("start", [0, WORD - 1])
    def test_the_set_is_uniform_wherever_it_starts(self, start, monkeypatch):
        """The independent bits that the set is made from only save time: a start that treats the
        other items alike will do.
        """
        oracle = SubsetSelection(5, 0.1)
        assert oracle.size == 2
        monkeypatch.setattr(
            "frequency.oracles.subset_selection.bernoulli_bits",
            lambda size, *_: np.full(size, start, dtype=np.uint64),
        )
        _, reports, _, P, _ = enumerated(TestSubsetSelection, 5, 0.1)
        found = np.bincount(
            positions(oracle.privatize(np.full(20_000, 2), np.random.default_rng(0)), reports),
            minlength=10,
        )
        assert goodness(found, P[:, 2]) > FALSE_ALARM

    def test_size_one_is_grr(self):
        for domain, epsilon in product((2, 3, 5), (LN3, 3, 10)):
            chosen = SubsetSelection(domain, epsilon)
            assert chosen.size == 1
            _, reports, table, _, _ = enumerated(TestSubsetSelection, domain, epsilon)
            assert (
                np.packbits(np.eye(domain, dtype=bool), axis=1, bitorder="little").tolist()
                == reports["bits"].tolist()
            )
            grr = enumerated(TestGRR, domain, epsilon).table
            near = Fraction(domain, WORD)  # each rounds to units of 2^-64 in its own way
            assert all(
                abs(a - b) <= near
                for mine, theirs in zip(table, grr, strict=True)
                for a, b in zip(mine, theirs, strict=True)
            )

    def test_least_variance(self):
        """No oracle does better on average over the domain (f = 1/D), whatever D and epsilon."""
        for domain, epsilon in product((2, 5, 20, 1000), (0.1, 1, 3)):
            least = SubsetSelection(domain, epsilon).variance(1, 1 / domain)
            for kind in (
                GRR,
                SUE,
                OUE,
                OLH,
                HRR,
                ProjectiveGeometry,
                CountMeanSketch,
                HadamardCountMeanSketch,
                JLOracle,
            ):
                assert kind(domain, epsilon).variance(1, 1 / domain) >= least * (1 - 1e-9), (
                    kind,
                    domain,
                    epsilon,
                )


# ---------------------------------------------------------------------------------- finite fields


class SlowField:
    """F_q: arithmetic modulo a prime; for prime powers the library's tables, after a check of the
    axioms.
    """

    def __init__(self, q):
        self.q, self.prime = q, all(q % d for d in range(2, q))
        if not self.prime:
            field, grid = Field(q), np.arange(q)
            a, b = (x.ravel() for x in np.meshgrid(grid, grid, indexing="ij"))
            self.sums, self.products = (
                field.add(a, b).reshape(q, q),
                field.multiply(a, b).reshape(q, q),
            )
            for table, start in ((self.sums, 0), (self.products, 1)):
                assert (table == table.T).all()
                assert (table[table] == table[:, table].transpose(0, 1, 2)).all()  # (ab)c = a(bc)
                # Everything has an inverse
                assert (np.sort(table[start:, start:], axis=1) == grid[start:]).all()
                assert (table[start] == grid).all()
            assert (
                self.products[:, self.sums]
                == self.sums[self.products[:, :, None], self.products[:, None, :]]
            ).all()

    def add(self, a, b):
        return (a + b) % self.q if self.prime else int(self.sums[a, b])

    def multiply(self, a, b):
        return a * b % self.q if self.prime else int(self.products[a, b])

    def dot(self, a, x, t):
        total = 0
        for j in range(t):
            total = self.add(total, self.multiply(a // self.q**j % self.q, x // self.q**j % self.q))
        return total


class TestOLH(OracleContract):
    """a uniform in F_q^t, and <a, v> with weight truth, every other element with weight lie (Wang
    et al. 2017).
    """

    make = staticmethod(OLH)
    epsilons = (
        *OracleContract.epsilons,
        math.log(2),
        math.log(4),
        math.log(6),
        math.log(7),
        math.log(8),
    )

    def fits(self, domain, epsilon):
        return epsilon <= 3

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field, rows = SlowField(q), list(product(range(q**t), range(q)))

        def chance(a, y, v):
            return Fraction(truth if field.dot(a, v, t) == y else lie, WORD * q**t)

        return Twin(
            reports_of(oracle, rows),
            [[chance(a, y, v) for v in range(oracle.domain)] for a, y in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field, size = SlowField(q), q**t
        told = [
            (word, outcome)
            for word, outcome in choice_words(q, truth, lie)
            if outcome in (0, 1, q - 1)
        ]
        for v, a in product({0, oracle.domain - 1}, {0, 1, size - 1}):
            for word, outcome in told:
                for draw in uniform_words(a, size):
                    yield (
                        v,
                        [*rejected_words(size), draw, word],
                        (a, field.add(field.dot(a, v, t), outcome)),
                    )

    def test_audit_of_large_fields(self):
        for q, epsilon in ((22027, 10), (101, math.log(100))):
            oracle = OLH(3, epsilon)
            assert oracle.hashes_to == q
            assert oracle.audit().ratio == Fraction(*weights_of(oracle, "truth", "lie"))

    @pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11, 16, 25])
    def test_the_transform_counts_as_all_users_and_items_do(self, q):
        """To the last bit: the server's shortcut against the definition, n x D inner products."""
        oracle, domain, n = OLH(200, math.log(q - 1) if q > 2 else 0.01), 200, 400
        assert oracle.hashes_to == q
        reports = oracle.privatize(self.values(domain, n), np.random.default_rng(q))
        field, t = SlowField(q), oracle.parameters["dimension"]
        table = np.array([[field.multiply(a, b) for b in range(q)] for a in range(q)])
        sums = np.array([[field.add(a, b) for b in range(q)] for a in range(q)])
        total = np.zeros((n, domain), dtype=np.int64)
        for j in range(t):
            a, x = (
                np.asarray(u, dtype=np.int64) // q**j % q
                for u in (reports["hash"], np.arange(domain))
            )
            total = sums[total, table[a[:, None], x]]
        support = (total == reports["value"][:, None]).sum(axis=0)
        assert oracle._supporters(oracle.aggregate(reports).counts).tolist() == support.tolist()
        p, share = float(oracle.p), support / n
        close(
            oracle.estimate(oracle.aggregate(reports)).frequencies,
            (share - 1 / q) / (p - 1 / q),
            [1.0],
        )


class TestProjectiveGeometry(OracleContract):
    """Hyperplanes of the projective space of F_q^t, those through the own point likelier (Feldman
    et al. 2022).

    Points and hyperplanes are the vectors whose leading digit is 1, in their order.
    """

    make = staticmethod(ProjectiveGeometry)

    def fits(self, domain, epsilon):
        return epsilon <= 3

    def geometry(self, oracle):
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field = SlowField(q)

        def leading(a):
            while a >= q:
                a //= q
            return a

        points = [a for a in range(1, q**t) if leading(a) == 1]
        incident = [[field.dot(h, x, t) == 0 for x in points[: oracle.domain]] for h in points]
        return q, t, points, incident

    def twin(self, oracle):
        through, beside = weights_of(oracle, "through", "beside")
        q, t, points, incident = self.geometry(oracle)
        assert through + (q - 1) * beside == WORD
        m = (q ** (t - 1) - 1) // (q - 1)
        assert all(sum(row[v] for row in incident) == m for v in range(oracle.domain))
        near, far = (
            Fraction(through, WORD * m),
            Fraction((q - 1) * beside, WORD * (len(points) - m)),
        )
        table = [[near if on else far for on in row] for row in incident]
        return Twin(reports_of(oracle, [(h,) for h in range(len(points))]), table)

    def tapes(self, oracle):
        through, beside = weights_of(oracle, "through", "beside")
        _, _, _, incident = self.geometry(oracle)
        q = oracle.parameters["field"]
        for v in {0, oracle.domain - 1}:
            for word, outcome in choice_words(q, through, beside):
                yield (
                    v,
                    [word],
                    lambda report, v=v, on=outcome == 0: incident[report["hyperplane"]][v] is on,
                )

    @pytest.mark.parametrize("domain", [1000, 65_536])
    @pytest.mark.parametrize("epsilon", [1, LN3, 3])
    def test_near_subset_selection(self, domain, epsilon):
        least = SubsetSelection(domain, epsilon).variance(1)
        assert least * (1 - 1e-9) <= ProjectiveGeometry(domain, epsilon).variance(1) <= 1.05 * least

    def test_pairs_of_points_lie_on_equally_many_hyperplanes(self):
        for domain, epsilon in ((5, 1), (20, 1), (20, 0.1)):
            oracle = ProjectiveGeometry(domain, epsilon)
            q, t, points, incident = self.geometry(oracle)
            lam = (q ** (t - 2) - 1) // (q - 1)
            on = np.array(incident, dtype=int)
            assert ((on.T @ on)[~np.eye(domain, dtype=bool)] == lam).all()
            (through,) = weights_of(oracle, "through")
            p, m = Fraction(through, WORD), (q ** (t - 1) - 1) // (q - 1)
            assert oracle.p == p
            assert oracle.q == p * Fraction(lam, m) + (1 - p) * Fraction(m - lam, len(points) - m)


# ------------------------------------------------------------------------------------------ cells


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("domain", [1, 2, 3, 5, 8, 11, 64, 200])
@pytest.mark.parametrize("kind", [GRR, SubsetSelection, ProjectiveGeometry, OLH])
def test_a_report_adds_one_to_each_of_its_cells(kind, domain, epsilon):
    """What is aggregated is a count of cells, as many distinct ones for each report; and supporters
    of many aggregates at once.
    """
    oracle, rng = kind(domain, epsilon), np.random.default_rng(domain)
    assert isinstance(oracle, CellOracle)
    reports = oracle.privatize(rng.integers(domain, size=60), rng)
    cells = oracle._cells(reports)
    assert cells.shape == (60, oracle.size if isinstance(oracle, SubsetSelection) else 1)
    assert oracle._cells(reports[:0]).shape[0] == 0
    total = np.zeros(math.prod(oracle._shape), dtype=np.int64)
    counts = []
    for row, report in zip(cells.tolist(), reports, strict=True):
        assert len(set(row)) == len(row)
        one = np.zeros_like(total)
        for cell in row:
            one[cell] += 1
            total[cell] += 1
        counts.append(one.reshape(oracle._shape))
        if kind is GRR:
            assert row == [report["item"]]
        elif kind is SubsetSelection:
            assert (
                row
                == np.flatnonzero(
                    np.unpackbits(report["bits"], count=domain, bitorder="little")
                ).tolist()
            )
        elif kind is ProjectiveGeometry:
            assert row == [report["hyperplane"]]
    for aggregate in (oracle._aggregate, lambda part: CellOracle._aggregate(oracle, part)):
        found = aggregate(reports)
        assert found.shape == oracle._shape
        assert found.ravel().tolist() == total.tolist()
        for k in range(60):
            assert (aggregate(reports[k : k + 1]) == counts[k]).all()
    stack = np.array(counts).reshape(3, 20, *oracle._shape)
    together = oracle._supporters(stack)
    assert together.shape == (3, 20, domain)
    for i, j in product(range(3), range(20)):
        assert together[i, j].tolist() == oracle._supporters(stack[i, j]).tolist()
    assert (
        together.sum(axis=(0, 1)).tolist()
        == oracle._supporters(total.reshape(oracle._shape)).tolist()
    )


# --------------------------------------------------------------------------------------- Hadamard


class HRRContract(OracleContract):
    """t distinct indices of 1 .. S-1, uniform; their signs with weight truth, other patterns with
    weight lie (thesis 4.7).
    """

    t = 1

    def make(self, domain, epsilon):
        valid = isinstance(domain, int) and not isinstance(domain, bool) and 0 < domain < 1 << 32
        return HRR(
            domain,
            epsilon,
            coefficients=min(self.t, max(1, (domain - 1).bit_length())) if valid else 1,
        )

    @staticmethod
    def signs(indices, v):
        return tuple(1 - 2 * ((j & v).bit_count() % 2) for j in indices)

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        t, s = oracle.parameters["coefficients"], 1 << max(1, (oracle.domain - 1).bit_length())
        rows = [
            (j, sign) for j in permutations(range(1, s), t) for sign in product((1, -1), repeat=t)
        ]
        drawn = WORD * math.perm(s - 1, t)
        table = [
            [
                Fraction(truth if self.signs(j, v) == sign else lie, drawn)
                for v in range(oracle.domain)
            ]
            for j, sign in rows
        ]
        return Twin(reports_of(oracle, rows), table)

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        t, s = oracle.parameters["coefficients"], 1 << max(1, (oracle.domain - 1).bit_length())
        for v, indices in product(
            {0, oracle.domain - 1}, [tuple(range(1, t + 1)), tuple(range(s - 1, s - 1 - t, -1))]
        ):
            drawn = [uniform_words(j - 1, s - 1)[-1] for j in indices] if s > 2 else []
            if t == 1:
                drawn = rejected_words(s - 1) + drawn
            for word, flips in choice_words(1 << t, truth, lie):
                sign = tuple(
                    x * (1 - 2 * (flips >> j & 1)) for j, x in enumerate(self.signs(indices, v))
                )
                yield v, [*drawn, word], (indices, sign)

    def test_contrast_is_the_literature_s(self):
        """Thesis 4.7: a coefficient is kept with probability p_r = (e^eps + 2^(t-1) - 1) / (e^eps +
        2^t - 1).
        """
        oracle, reports, _, P, _ = self.enumerated((5, 1))
        t, e = self.t, math.exp(1)
        own = np.array(
            [
                [s * x for s, x in zip(r["sign"], self.signs(r["index"].tolist(), 3), strict=True)]
                for r in reports
            ]
        )
        kept = P[:, 3] @ (own == 1)
        np.testing.assert_allclose(kept, (e + 2 ** (t - 1) - 1) / (e + 2**t - 1), rtol=1e-6)
        np.testing.assert_allclose(float(oracle._contrast), 2 * kept - 1, rtol=1e-9)

    def test_size_of_a_report(self):
        """An index of log2 S bits and a sign, t times."""
        assert self.make(8, 1.0).report_bits == self.t * 4


class TestHRR1(HRRContract):
    t = 1


class TestHRR2(HRRContract):
    t = 2


class TestHRR3(HRRContract):
    t = 3


@pytest.mark.parametrize("coefficients", [0, -1, 4, 1.0, True, None, "1"])
def test_wrong_coefficients(coefficients):
    with pytest.raises(ValueError, match="coefficients must be an integer up to log2"):
        HRR(5, 1.0, coefficients=coefficients)


# --------------------------------------------------------------------------------------- sketches


class HashedContract(SketchContract):
    sizes = ("hashes", "width")

    def make(self, domain, epsilon):
        small = not isinstance(domain, int) or domain <= 5
        return (
            self.kind(domain, epsilon, hashes=3, width=4, seed=5)
            if small
            else self.kind(domain, epsilon, hashes=8, width=64)
        )

    def families(self):
        yield self.kind(3, 1.0, hashes=1, width=4), 2
        yield self.kind(3, LN3, hashes=2, width=2), 2

    def seeded(self, seed):
        return self.kind(20, 3.0, hashes=4, width=32, seed=seed)

    def cells(self, oracle, public):
        """cells[hash][item]: the bits of ``log2 width`` consecutive public functions, least
        significant first.
        """
        g, places = oracle.parameters["hashes"], oracle.parameters["width"].bit_length() - 1

        def bit(row, item):
            return (
                public_bit("hash", oracle.parameters["seed"], g * places, row, item)
                if public is None
                else public(row, item)
            )

        return [
            [sum(bit(h * places + k, x) << k for k in range(places)) for x in range(oracle.domain)]
            for h in range(g)
        ]

    @pytest.mark.parametrize("width", [1, 3, 6, 1000])
    def test_width_is_a_power_of_two(self, width):
        with pytest.raises(ValueError, match="width must be"):
            self.kind(3, 1.0, width=width)


class TestHadamardCountMeanSketch(HashedContract):
    """A hash function and a coefficient, uniform; the sign of the cell's coefficient by randomised
    response (Apple 2017).
    """

    kind = HadamardCountMeanSketch

    def twin(self, oracle, public=None):
        truth, lie = weights_of(oracle, "truth", "lie")
        g, w, cells = oracle.hashes, oracle.width, self.cells(oracle, public)
        rows = list(product(range(g), range(1, w), (1, -1)))

        def chance(h, j, sign, v):
            true = 1 - 2 * ((j & cells[h][v]).bit_count() % 2)
            return Fraction(truth if sign == true else lie, WORD * g * (w - 1))

        return Twin(
            reports_of(oracle, rows),
            [[chance(*row, v) for v in range(oracle.domain)] for row in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        cells = self.cells(oracle, None)
        for v, h, j in product({0, oracle.domain - 1}, range(3), range(1, 4)):
            true = 1 - 2 * ((j & cells[h][v]).bit_count() % 2)
            for word, flip in choice_words(2, truth, lie):
                yield (
                    v,
                    [
                        *rejected_words(3),
                        uniform_words(h, 3)[0],
                        *rejected_words(3),
                        uniform_words(j - 1, 3)[1],
                        word,
                    ],
                    (h, j, -true if flip else true),
                )


class TestCountMeanSketch(HashedContract):
    """A hash function, uniform; every cell's bit by itself, as in SUE (Apple 2017)."""

    kind = CountMeanSketch
    simulations = 8000

    def twin(self, oracle, public=None):
        p, q = (Fraction(x, WORD) for x in weights_of(oracle, "p", "q"))
        g, w, cells = oracle.hashes, oracle.width, self.cells(oracle, public)
        rows = list(product(range(g), subsets(range(w))))

        def chance(h, chosen, v):
            chances = [p if cell == cells[h][v] else q for cell in range(w)]
            return math.prod(o if cell in chosen else 1 - o for cell, o in enumerate(chances)) / g

        table = [[chance(*row, v) for v in range(oracle.domain)] for row in rows]
        return Twin(reports_of(oracle, [(h, subset_bytes(chosen, w)) for h, chosen in rows]), table)

    def tapes(self, oracle):
        p, q = weights_of(oracle, "p", "q")
        cells = self.cells(oracle, None)
        for v, h, number, own in product(
            {0, oracle.domain - 1}, range(3), (q - 1, q), (p - 1, p, 0, WORD - 1)
        ):
            chosen = (set(range(4)) - {cells[h][v]} if number < q else set()) | (
                {cells[h][v]} if own < p else set()
            )
            yield v, [uniform_words(h, 3)[1], *planes(number, q), own], (h, subset_bytes(chosen, 4))


class TestJLOracle(SketchContract):
    """A row, uniform; the sign of the item there by randomised response (Bassily and Smith 2015,
    Algorithm 1).
    """

    kind, patched, sizes = JLOracle, "_matrix", ("rows",)

    def make(self, domain, epsilon):
        return JLOracle(
            domain, epsilon, rows=6 if not isinstance(domain, int) or domain <= 5 else 100, seed=5
        )

    def families(self):
        yield JLOracle(3, 1.0, rows=1), 1
        yield JLOracle(3, LN3, rows=2), 2

    def seeded(self, seed):
        return JLOracle(20, 3.0, rows=64, seed=seed)

    def public(self, oracle, row, item):
        return public_bit(
            "projection", oracle.parameters["seed"], oracle.parameters["rows"], row, item
        )

    def twin(self, oracle, public=None):
        truth, lie = weights_of(oracle, "truth", "lie")
        bit = public or (lambda row, item: self.public(oracle, row, item))
        rows = list(product(range(oracle.rows), (1, -1)))

        def chance(row, sign, v):
            return Fraction(truth if sign == 1 - 2 * bit(row, v) else lie, WORD * oracle.rows)

        return Twin(
            reports_of(oracle, rows),
            [[chance(*row, v) for v in range(oracle.domain)] for row in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        for v, row in product({0, oracle.domain - 1}, range(oracle.rows)):
            true = 1 - 2 * self.public(oracle, row, v)
            for word, flip in choice_words(2, truth, lie):
                yield (
                    v,
                    [*rejected_words(oracle.rows), uniform_words(row, oracle.rows)[flip], word],
                    (row, -true if flip else true),
                )


def test_public_bits_are_those_of_the_definition():
    items = np.array([0, 1, 2, 3, 12345, (1 << 40) + 1, (1 << 63) - 1])
    x, cube = features(items)
    assert x.tolist() == items.tolist()
    assert cube.tolist() == [gf64(v, gf64(v, v)) for v in items.tolist()]
    found = PublicBits("hash", 7, 5).bits(np.arange(5)[:, None], (x, cube))
    assert found.tolist() == [
        [public_bit("hash", 7, 5, row, v) for v in items.tolist()] for row in range(5)
    ]


def test_any_five_items_have_independent_public_bits():
    """No two, and no four, of the vectors (1, x, x^3) sum to zero (an odd number cannot), so any
    five are linearly independent.
    """
    rng = np.random.default_rng(0)
    for items in (range(40), [int(v) for v in rng.integers(0, 1 << 63, size=40)]):
        vectors = [(v, gf64(v, gf64(v, v))) for v in items]
        assert len(set(vectors)) == 40
        sums = {}
        for pair in combinations(range(40), 2):
            a, b = (vectors[k] for k in pair)
            key = (a[0] ^ b[0], a[1] ^ b[1])
            assert key not in sums
            sums[key] = pair


# ----------------------------------------------------------------------------------------- tables


class TabularContract(OracleContract):
    symmetric = False
    big_domains = (20,)

    def table(self, domain, epsilon):
        raise NotImplementedError

    def make(self, domain, epsilon):
        return Tabular(self.table(domain, epsilon))

    def twin(self, oracle):
        sent = [(y, row) for y, row in enumerate(oracle.mechanism.table) if any(row)]
        return Twin(reports_of(oracle, [(y,) for y, _ in sent]), [list(row) for _, row in sent])

    def tapes(self, oracle):
        for v in range(oracle.domain):
            total = Fraction(0)
            for y, row in enumerate(oracle.mechanism.table):
                first, total = total, total + row[v]
                low, high = math.ceil(first * WORD), math.floor(total * WORD) - 1
                if low <= high:
                    yield v, [low], (y,)
                    yield v, [high], (y,)

    def test_variance_is_the_enumerated_one(self, case):
        """The mean over items of the variance for the item when all others are equally frequent."""
        oracle, _, _, P, E = self.enumerated(case)
        mean, _ = moments(P, E)
        square = P.T @ E**2
        close(mean, np.eye(oracle.domain), E)
        for f in (0.0, 0.3, 1.0) if oracle.domain > 1 else (1.0,):
            expected = []
            for x in range(oracle.domain):
                held = np.full(oracle.domain, (1 - f) / max(oracle.domain - 1, 1))
                held[x] = f
                # Users' values are fixed, and each contributes the variance under its own.
                expected.append(held @ (square[:, x] - mean[:, x] ** 2))
            close(9 * oracle.variance(9, f), np.mean(expected), E**2)

    def test_variances_are_unbiased(self, case):
        """They are those of single items, which `test_variances_of_sums_are_unbiased` tests, cut at
        0.
        """
        oracle, reports, _, _, _ = self.enumerated(case)
        eye = np.eye(oracle.domain)
        for r in range(len(reports)):
            aggregate = oracle.aggregate(reports[r : r + 1])
            estimate = oracle.estimate(aggregate)
            raw = oracle._linear_variance(eye, aggregate, estimate.frequencies, None)
            close(estimate.variances, np.maximum(raw, 0), raw)

    def test_wrong_domain(self):
        for wrong in (None, 3, [[1]], "krr"):
            with pytest.raises(TypeError, match="mechanism must be"):
                Tabular(wrong)

    def test_wrong_epsilon(self):
        with pytest.raises(PrivacyViolation):
            Tabular(Mechanism(self.table(3, 1.0).table, Privacy("9/10", neighbours="all")))


class TestTabularKRR(TabularContract):
    def table(self, domain, epsilon):
        return named.krr(domain, Privacy.from_epsilon(epsilon, neighbours="all").alpha)


class TestTabularGeometric(TabularContract):
    """Private for adjacent items only, as the mechanism says."""

    def table(self, domain, epsilon):
        return named.geometric(domain - 1, Privacy.from_epsilon(epsilon).alpha)

    def pairs(self, oracle):
        return [(v, v + 1) for v in range(oracle.domain - 1)]


class TestTabularRectangular(TabularContract):
    """More outputs than items, with different amounts of information, one of no information and one
    that never occurs.
    """

    def table(self, domain, epsilon):
        alpha = Privacy.from_epsilon(epsilon, neighbours="all").alpha
        strong, weak = (named.krr(domain, a).table for a in (alpha, (1 + alpha) / 2))
        rows = [[p / 2 for p in row] for row in strong] + [
            [p * Fraction(3, 10) for p in row] for row in weak
        ]
        return Mechanism(
            [*rows, [Fraction(1, 5)] * domain, [Fraction(0)] * domain],
            Privacy(alpha, neighbours="all"),
        )

    def test_weighs_outputs_by_what_they_say(self, case):
        """No other unbiased estimator has a smaller variance summed over items, for equally
        frequent ones (Gauss and Markov).
        """
        oracle, _, _, P, E = self.enumerated(case)
        rng = np.random.default_rng(0)
        mean = P.mean(axis=1)
        for _ in range(3):
            # Anything that the columns of P are orthogonal to may be added.
            other = rng.normal(size=(oracle.domain, len(P)))
            other -= other @ P @ np.linalg.pinv(P)
            product = (E.T * mean) @ other.T
            assert np.abs(np.diag(product)).max() <= 1e-8 * np.abs(E).max()


def test_tables_that_do_not_identify():
    for table in (
        named.uniform(2),
        Mechanism([[1, 1, 0], [0, 0, 1]], Privacy("1/2", neighbours=((0, 1),))),
    ):
        with pytest.raises(NotIdentifiable, match="rank"):
            Tabular(table)


# ----------------------------------------------------------------------------------- closed forms

EPSILONS = (0.1, 1.0, LN3, 3.0, 10.0)


def is_near(found, expected):
    """The weights are rounded to the private side, by less than one part in 10^6 of epsilon."""
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 5, 20, 1000])
def test_variances_of_the_literature(domain, epsilon):
    e = math.exp(epsilon)
    is_near(OUE(domain, epsilon).variance(10), 4 * e / (10 * (e - 1) ** 2))  # thesis eq. 2.7
    root = math.exp(epsilon / 2)
    is_near(SUE(domain, epsilon).variance(10), root / (10 * (root - 1) ** 2))  # thesis eq. 2.6
    # Wang et al. 2017, eq. 5
    is_near(GRR(domain, epsilon).variance(10), (domain - 2 + e) / (10 * (e - 1) ** 2))
    olh = OLH(domain, epsilon)
    g = olh.hashes_to
    # Wang et al. 2017, section 5
    is_near(olh.variance(10), (e + g - 1) ** 2 / (10 * (e - 1) ** 2 * (g - 1)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 8, 1000, 1024])
def test_variance_of_hadamard_response(domain, epsilon):
    """A user's report is +-scale, scale = ((S-1)/S) (e+1)/(e-1), times the sign of the item; its
    mean is 1 - 1/S or -1/S.
    """
    e, s = math.exp(epsilon), 1 << max(1, (domain - 1).bit_length())
    scale = (s - 1) / s * (e + 1) / (e - 1)
    is_near(HRR(domain, epsilon).variance(10, 1.0), (scale**2 - (1 - 1 / s) ** 2) / 10)
    is_near(HRR(domain, epsilon).variance(10, 0.0), (scale**2 - 1 / s**2) / 10)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 5, 20])
def test_grr_is_the_named_mechanism(domain, epsilon):
    """`mechdesign.named.krr` at the ratio that is sampled, entry by entry, is what GRR samples by
    definition.
    """
    oracle = GRR(domain, epsilon)
    truth, lie = weights_of(oracle, "truth", "lie")
    table = [
        [Fraction(truth if y == v else lie, WORD) for v in range(domain)] for y in range(domain)
    ]
    assert [list(row) for row in oracle.mechanism.table] == table
    assert oracle.mechanism == named.krr(domain, Fraction(lie, truth))
    assert [list(row) for row in oracle.mechanism.table] == TestGRR().twin(oracle).table
    assert oracle.mechanism.audit().ratio == oracle.audit().ratio


def test_the_mechanism_of_grr_estimates_as_grr():
    """Deployed as a table it has the same reports and estimates."""
    oracle = GRR(5, 1.0)
    table = Tabular(oracle.mechanism)
    reports = oracle.privatize(np.arange(500) % 5, np.random.default_rng(0))
    other = np.array([(int(r["item"]),) for r in reports], dtype=table.report_dtype)
    mine, theirs = (
        oracle.estimate(oracle.aggregate(reports)),
        table.estimate(table.aggregate(other)),
    )
    close(mine.frequencies, theirs.frequencies, [1.0])
    w = np.arange(5.0)
    close(mine.linear(w).variance, theirs.linear(w).variance, [1.0])


def test_binary_randomised_response_is_the_thesis_s():
    for epsilon in EPSILONS:
        found = RR(2, epsilon).mechanism.matrix
        is_near(found[0, 0], math.exp(epsilon) / (math.exp(epsilon) + 1))
        assert found[0, 0] == found[1, 1]


def test_reports_of_different_oracles_do_not_mix():
    oracles = [
        kind(5, 1.0) for kind in (GRR, SUE, OUE, SubsetSelection, ProjectiveGeometry, OLH, HRR)
    ]
    for mine, theirs in permutations(oracles, 2):
        with pytest.raises(ValueError, match="an aggregate of"):
            mine.estimate(theirs.aggregate(theirs.privatize([0, 1])))


def test_oracles_print_as_they_are_made():
    for oracle in (
        GRR(5, 1.5),
        RR(2, 1.5),
        HRR(5, LN3, coefficients=2),
        JLOracle(5, 1, rows=7),
        CountMeanSketch(5, Fraction(1, 2), width=8),
    ):
        assert eval(repr(oracle)) == oracle


def test_codes_tell_reports_apart():
    oracle = HRR(5, 1.0, coefficients=3)
    reports = TestHRR3().twin(oracle).reports
    assert len(set(codes(reports).tolist())) == len(reports) == 7 * 6 * 5 * 8


def test_a_table_of_the_largest_says_that_they_were_picked():
    oracle = GRR(20, 1.0)
    estimate = oracle.estimate(oracle.simulate(np.full(20, 50), np.random.default_rng(1)))
    *lines, last = estimate.table(largest=3).splitlines()
    assert len(lines) == 4
    assert last.startswith("The largest of 20, and so too large on average")
    assert (
        len(estimate.table(largest=None).splitlines())
        == len(estimate.table(largest=20).splitlines())
        == 21
    )
