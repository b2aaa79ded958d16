"""What inputs and outputs stand for: counts, bands and pairs of counts."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechdesign import (
    Bands,
    CountPairs,
    Counts,
    InvalidCount,
    InvalidFile,
    InvalidMechanism,
    Mechanism,
    MechanismError,
    NotSquare,
    Privacy,
    design,
)
from mechdesign.base.files import digest_of
from mechdesign.losses import L0, L1, L2, Loss
from mechdesign.mechanism import device
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import LARGEST, distances, errors, values_of
from mechdesign.properties import SEVEN

HALF = Privacy(alpha="1/2")
BANDS = Bands([(0, 1), (2, 2), (3, 8)])
KINDS = {
    "wide": (Counts(-2, 7), Counts(0, 4)),
    "shifted": (Counts(2, 3), Counts(0, 4)),
    "bands": (BANDS, Counts(0, 8)),
    "pairs": (CountPairs(1, 2), CountPairs(1, 2)),
    "wider pairs": (CountPairs(2, 3), CountPairs(1, 2)),
    "plain": (Counts(0, 3), Counts(0, 3)),
}


@pytest.mark.parametrize("name", KINDS)
def test_distances_are_as_the_words_say(name):
    outputs, inputs = KINDS[name]

    def apart(i, j):
        if isinstance(outputs, Bands):
            low, high = outputs.bands[i]
            return min(abs(j - count) for count in range(low, high + 1))
        first, second = outputs.coordinates[i].tolist(), inputs.coordinates[j].tolist()
        return sum(abs(a - b) for a, b in zip(first, second, strict=True))

    found = distances(outputs, inputs)
    assert found.shape == (outputs.size, inputs.size)
    assert all(found[i, j] == apart(i, j) for i, j in np.ndindex(found.shape))
    if name != "pairs" and name != "wider pairs":
        assert (abs(errors(outputs, inputs)) == found).all()
        low = found - errors(outputs, inputs)
        assert ((low == 0) | (errors(outputs, inputs) < 0)).all()


def test_labels_and_numbers():
    assert Counts(-1, 1).labels == ("-1", "0", "1")
    assert BANDS.labels == ("0-1", "2", "3-8")
    assert CountPairs(1, 1).labels == ("0,0", "0,1", "1,0", "1,1")
    assert values_of(3) == Counts(0, 2)
    for values in (Counts(0, 0), BANDS, CountPairs(0, 0), CountPairs(2, 3)):
        assert len(values.labels) == len(set(values.labels)) == values.size
    assert CountPairs(2, 3).coordinates.tolist() == [list(p) for p in product(range(3), range(4))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Counts(1, 0),
        lambda: Counts(0, LARGEST + 1),
        lambda: Counts(0.0, 1),
        lambda: Counts(False, True),
        lambda: Bands([]),
        lambda: Bands([(0, 4), (6, 7)]),
        lambda: Bands([(0, 4), (4, 7)]),
        lambda: Bands([(3, 2)]),
        lambda: CountPairs(-1, 2),
        lambda: CountPairs(1, "2"),
    ],
)
def test_what_are_no_values_is_refused(make):
    with pytest.raises(ValueError, match=r"must be|begins at|at least one"):
        make()


def test_numpy_integers_are_integers():
    assert Counts(np.int64(0), np.int8(3)) == Counts(0, 3)
    assert CountPairs(np.int64(1), np.uint8(2)) == CountPairs(1, 2)
    assert Bands([(np.int64(0), np.int64(4))]).labels == ("0-4",)


def test_pairs_that_differ_by_one_are_neighbours():
    pairs = CountPairs(2, 1)
    expected = {
        (j, k)
        for j, k in product(range(6), repeat=2)
        if j < k and np.abs(pairs.coordinates[j] - pairs.coordinates[k]).sum() == 1
    }
    assert set(pairs.neighbours()) == expected
    assert len(pairs.neighbours(9)) == 15


def test_the_neighbours_of_pairs_must_be_listed():
    table = [[Fraction(1, 4)] * 4] * 4
    with pytest.raises(InvalidMechanism, match="listed"):
        Mechanism(table, HALF, outputs=CountPairs(1, 1), inputs=CountPairs(1, 1))
    with pytest.raises(InvalidMechanism, match="listed"):
        Mechanism(
            table,
            Privacy(alpha="1/2", neighbours=2),
            outputs=CountPairs(1, 1),
            inputs=CountPairs(1, 1),
        )
    listed = Privacy(alpha="1/2", neighbours=CountPairs(1, 1).neighbours())
    assert Mechanism(table, listed, outputs=CountPairs(1, 1), inputs=CountPairs(1, 1))


@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [
        (Counts(0, 4), None),
        (None, Counts(1, 2)),
        (None, Bands([(0, 0), (1, 1)])),
        (CountPairs(0, 1), None),
        (None, CountPairs(0, 1)),
    ],
)
def test_values_that_do_not_fit_are_refused(outputs, inputs):
    with pytest.raises(InvalidMechanism):
        Mechanism(
            [["1/2", "1/2"]] * 2,
            Privacy(alpha="1/2", neighbours="all"),
            outputs=outputs,
            inputs=inputs,
        )


def designs():
    wide = design(4, HALF, L2(), ["unbiased"], outputs=Counts(-4, 8)).mechanism
    bands = design(8, HALF, L0(), ["CM"], outputs=BANDS).mechanism
    pairs = design(CountPairs(1, 2), HALF, L1(), ["WH"]).mechanism
    return {"wide": wide, "bands": bands, "pairs": pairs}


@pytest.fixture(scope="module")
def designed():
    return designs()


def test_unbiased_mechanisms_exist_with_wider_outputs(designed):
    wide = designed["wide"]
    for j in range(5):
        assert sum((i - 4) * row[j] for i, row in enumerate(wide.table)) == j
    assert wide.error_distribution().bias == 0
    assert min(wide.error_distribution().histogram) == -8
    drawn = wide.release(np.full(2000, 2), np.random.default_rng(1))
    assert drawn.min() >= -4
    assert drawn.max() <= 8
    assert abs(drawn.mean() - 2) < 6 * drawn.std() / 2000**0.5


def test_bands_and_pairs_are_released_as_such(designed):
    assert set(designed["bands"].release(range(9)).tolist()) <= {0, 1, 2}
    pairs = designed["pairs"]
    assert pairs.release([[[0, 0], [1, 2]]]).shape == (1, 2, 2)
    assert pairs.privacy.neighbours == CountPairs(1, 2).neighbours()
    drawn = pairs.release(np.tile([1, 0], (4000, 1)), np.random.default_rng(2))
    shares = [np.mean((drawn == pair).all(axis=1)) for pair in CountPairs(1, 2).coordinates]
    assert np.abs(shares - pairs.matrix[:, 3]).max() < 6 * 0.5 / 4000**0.5
    with pytest.raises(InvalidCount):
        pairs.release([[2, 0]])
    with pytest.raises(InvalidCount):
        pairs.release([[0, "x"]])
    with pytest.raises(ValueError, match="length two"):
        pairs.release([0, 1, 1])
    with pytest.raises(InvalidMechanism, match="no difference"):
        pairs.error_distribution()


def test_files_keep_the_values(designed, tmp_path):
    for name, mechanism in designed.items():
        path = tmp_path / f"{name}.json"
        mechanism.save(path)
        assert json.loads(path.read_text())["version"] == 2
        loaded = Mechanism.load(path)
        assert loaded == mechanism
        assert loaded.certificate == mechanism.certificate
        assert (loaded.output_values, loaded.input_values) == (
            mechanism.output_values,
            mechanism.input_values,
        )
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        drawn = device.Device(str(path), below=lambda bound: 0)
        assert drawn.labels == list(mechanism.output_values.labels)
        for k, label in enumerate(mechanism.input_values.labels):
            first = next(i for i, row in enumerate(mechanism.weights) if row[k])
            assert drawn.answer(label) == mechanism.output_values.labels[first]
        for wrong in ("-1", "9", "1,2,0", "x", "3,"):
            with pytest.raises(ValueError, match="not among"):
                drawn.answer(wrong)


def test_plain_tables_stay_files_of_version_1(tmp_path):
    design(3, HALF, L2()).save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    assert content["version"] == 1
    assert "outputs" not in content


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": {"counts": [-4, 9]}},
        {"outputs": {"counts": [8, -4]}},
        {"outputs": {"counts": [True, 13]}},
        {"outputs": {"counts": ["-4", "8"]}},
        {"outputs": {"bands": [[0, 4]]}},
        {"outputs": {"bands": [[k, k + (k > 6)] for k in range(13)]}},
        {"outputs": {"pairs": [0, 12]}},
        {"outputs": {"numbers": [0, 12]}},
        {"outputs": {}},
        {"outputs": None},
        {"outputs": [0, 12]},
        {"outputs": {"counts": [-4, 8], "bands": []}},
        {"inputs": {"counts": [1, 5]}},
        {"inputs": {"bands": [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]}},
        {"inputs": {"pairs": [0, 4]}},
        {"version": 1},
        {"version": 3},
    ],
)
def test_forged_values_are_refused(change, designed, tmp_path):
    path = tmp_path / "m.json"
    designed["wide"].save(path)
    content = json.loads(path.read_text()) | change
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises((InvalidFile, InvalidMechanism)):
        Mechanism.load(path)
    if change != {"outputs": {"pairs": [0, 12]}} and change != {"inputs": {"pairs": [0, 4]}}:
        with pytest.raises(ValueError, match=r".+"):
            device.Device(str(path))


def test_other_values_make_another_claim(designed, tmp_path):
    # Shifted outputs are other answers: the certificate no longer holds
    path = tmp_path / "m.json"
    designed["wide"].save(path)
    content = json.loads(path.read_text()) | {"outputs": {"counts": [-3, 9]}}
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(MechanismError, match="lacks the property unbiased"):
        Mechanism.load(path)


def test_losses_cost_by_the_values():
    assert L1().costs(Counts(-1, 1), 2) == [[1, 2], [0, 1], [1, 0]]
    assert L0().costs(BANDS, 9)[2] == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert L2().costs(CountPairs(1, 1), CountPairs(1, 1))[0] == [0, 1, 1, 4]

    class Late(Loss):
        def cost(self, output, input):
            return Fraction(max(0, output - input))

    assert Late().costs(BANDS, 9)[2] == [3, 2, 1, 0, 0, 0, 0, 0, 0]
    assert Late().costs(Counts(-1, 1), 2) == [[0, 0], [0, 0], [1, 0]]
    with pytest.raises(InvalidMechanism, match="pairs"):
        Late().costs(CountPairs(1, 1), CountPairs(1, 1))


def holds_by_definition(short, p, outputs, inputs):
    """The seven properties by loops over all cells, in terms of distances."""
    far, m, n = distances(outputs, inputs), outputs.size, inputs.size
    truth = [next(i for i in range(m) if far[i, j] == 0) for j in range(n)]
    cells = range(n)
    return {
        "RH": lambda: all(
            p[truth[j]][j] >= p[truth[j]][k] for j in cells for k in cells if far[truth[j], k]
        ),
        "CH": lambda: all(p[truth[j]][j] >= p[i][j] for j in cells for i in range(m)),
        "F": lambda: len({p[truth[j]][j] for j in cells}) == 1,
        "WH": lambda: all(p[truth[j]][j] * m >= 1 for j in cells),
        "S": lambda: all(p[i][j] == p[m - 1 - i][n - 1 - j] for i in range(m) for j in cells),
        "RM": lambda: all(
            p[i][j] >= p[i][k]
            for i in range(m)
            for j in cells
            for k in cells
            if far[i, j] < far[i, k] and errors(outputs, inputs)[i, j] * (k - j) <= 0
        ),
        "CM": lambda: all(
            p[i][j] >= p[k][j]
            for j in cells
            for i in range(m)
            for k in range(m)
            if far[i, j] < far[k, j] and (k - i) * (i - truth[j]) >= 0
        ),
    }[short]()


@pytest.mark.parametrize("name", ["wide", "bands", "plain", "pairs"])
@pytest.mark.parametrize("item", SEVEN, ids=lambda item: item.short)
def test_properties_by_definition(name, item):
    outputs, inputs = KINDS[name]
    rng = np.random.default_rng(5)
    privacy = Privacy(alpha="1/9", neighbours="all")
    if name == "pairs" and item.short in ("RM", "CM"):
        table = [[Fraction(1, 6)] * 6] * 6
        with pytest.raises(NotSquare, match="no"):
            item.holds(Mechanism(table, privacy, outputs=outputs, inputs=inputs))
        return
    met = []
    far = distances(outputs, inputs)
    for k in range(150):
        # Near the truth more is likely, so that many tables have the property and many have not
        weights = np.maximum(3 - far, 0) + rng.integers(0, 4, far.shape) * rng.integers(0, 2)
        if rng.random() < 0.5:
            weights = weights + weights[::-1, ::-1]
        weights = weights + (weights.sum(axis=0) == 0) if k else np.ones(far.shape)
        p = [
            [Fraction(int(w), int(t)) for w, t in zip(r, weights.sum(0), strict=True)]
            for r in weights
        ]
        mechanism = Mechanism(p, privacy, outputs=outputs, inputs=inputs)
        met.append(item.holds(mechanism))
        assert met[-1] == holds_by_definition(item.short, p, outputs, inputs)
    assert set(met) == {True, False}


@pytest.mark.parametrize("name", ["wide", "bands", "pairs"])
@pytest.mark.parametrize(
    "names", [["WH"], ["CH", "RH"], ["F", "RH"], ["S", "WH"], ["RM", "CM", "WH"], ["F", "CM"]]
)
def test_designs_over_other_values_are_certified(name, names):
    outputs, inputs = KINDS[name]
    if name == "pairs" and {"RM", "CM"} & set(names):
        return
    if name == "bands" and "S" in names:  # of bands that are not symmetric
        outputs = Bands([(0, 2), (3, 5), (6, 8)])
    found = design(inputs, HALF, L1(), names, outputs=outputs)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)
    held = found.mechanism.properties()
    assert all(held[short] for short in names)


def test_wider_outputs_never_cost_more():
    plain = design(4, HALF, L1(), ["CM"]).certificate.objective
    wide = design(4, HALF, L1(), ["CM"], outputs=Counts(-2, 6)).certificate.objective
    assert wide == plain
    assert design(Counts(0, 4), HALF, L1(), ["CM"]).certificate.objective == plain


def test_design_refuses_what_are_no_values():
    with pytest.raises(TypeError, match="outputs must be Values"):
        design(4, HALF, outputs=(-2, 6))
    with pytest.raises(InvalidMechanism, match="no difference"):
        design(4, HALF, outputs=CountPairs(1, 1))
    with pytest.raises(InvalidMechanism, match="inputs are the counts"):
        design(Counts(1, 4), HALF)


def test_an_index_table_is_an_array():
    at = IndexTable(Counts(-1, 2), 3)
    assert at.truth.tolist() == [3, 7, 11]
    assert at[1:3, 0].tolist() == [3, 6]
    assert type(at[1:]) is np.ndarray
    assert not at.aligned
    assert IndexTable(3, 3).aligned
    with pytest.raises(NotSquare, match="2 x 3"):
        _ = IndexTable(2, 3).truth
