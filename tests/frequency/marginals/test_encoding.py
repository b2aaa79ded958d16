"""`frequency.marginals.BinaryEncoding` against counting."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.marginals import BinaryEncoding, Domain, InpHT, InpPS

DOMAIN = Domain({"a": 3, "b": 2, "c": 1, "d": 5, "e": 4})


def test_names_and_ways() -> None:
    encoding = BinaryEncoding(DOMAIN)
    assert encoding.bits.attributes == ("a.0", "a.1", "b.0", "d.0", "d.1", "d.2", "e.0", "e.1")
    assert set(encoding.bits.shape) == {2}
    assert [encoding.way(k) for k in range(6)] == [0, 3, 5, 7, 8, 8]
    with pytest.raises(ValueError, match="single value"):
        BinaryEncoding(Domain({"a": 1}))


def test_records_are_their_values_in_binary() -> None:
    encoding, rng = BinaryEncoding(DOMAIN), np.random.default_rng(1)
    records = rng.integers(0, DOMAIN.shape, size=(200, 5))
    bits = encoding.records(records)
    expected = [
        [int(x) for v, w in zip(row, (2, 1, 0, 3, 2), strict=True) if w for x in f"{v:0{w}b}"]
        for row in records.tolist()
    ]
    assert bits.tolist() == expected
    assert encoding.records(records[:0]).shape == (0, 8)
    with pytest.raises(ValueError, match="values"):
        encoding.records([[3, 0, 0, 0, 0]])


@pytest.mark.parametrize("attributes", [["a"], ["c"], ["d", "a"], ["b", "c", "e"]])
def test_marginals_without_noise(attributes: list[str]) -> None:
    """At a huge epsilon every user tells the truth."""
    encoding, rng = BinaryEncoding(DOMAIN), np.random.default_rng(2)
    records = rng.integers(0, DOMAIN.shape, size=(500, 5))
    protocol = InpPS(encoding.bits, encoding.way(3), 60.0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(encoding.records(records), rng))
    )
    np.testing.assert_allclose(
        encoding.marginal(estimate, attributes), DOMAIN.marginal(records, attributes), atol=1e-6
    )


def test_noisy_marginals_are_unbiased_and_sum_to_one() -> None:
    """From 300 seeded repeats: within 6 deviations of each mean, a false alarm in 10^7."""
    domain, rng = Domain({"a": 3, "b": 5}), np.random.default_rng(3)
    encoding, records = BinaryEncoding(domain), rng.integers(0, (2, 5), size=(2000, 2))
    protocol, bits = InpHT(encoding.bits, encoding.way(2), 1.0), encoding.records(records)
    found = np.array(
        [
            encoding.marginal(
                protocol.estimate(protocol.aggregate(protocol.privatize(bits, rng))), ["b", "a"]
            )
            for _ in range(300)
        ]
    )
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1)
    assert found.shape[1:] == (5, 3)
    error = (found.mean(axis=0) - domain.marginal(records, ["b", "a"])) / (
        found.std(axis=0) / 300**0.5
    )
    assert np.abs(error).max() < 6
