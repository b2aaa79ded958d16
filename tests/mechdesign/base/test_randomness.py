"""The source of random bits: the operating system, or a generator of numpy."""

import numpy as np
import pytest

from mechdesign import named
from mechdesign.base.numbers import bit_source
from mechdesign.noise.sampling import Sampler
from tests.tape import WORD


def test_the_secure_source_is_the_operating_system(monkeypatch):
    third = (WORD - 1) // 3
    monkeypatch.setattr(
        "mechdesign.base.numbers.os.urandom",
        lambda size: np.full(size // 8, third - 1, dtype=np.uint64).tobytes(),
    )
    assert Sampler([[1], [2]], 3).draw([0, 0, 0]).tolist() == [0, 0, 0]
    monkeypatch.setattr(
        "mechdesign.base.numbers.os.urandom",
        lambda size: np.full(size // 8, third + 1, dtype=np.uint64).tobytes(),
    )
    assert Sampler([[1], [2]], 3).draw([0, 0, 0]).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "rng",
    [np.random, np.random.RandomState(0), 0, "seed", np.random.PCG64(0)],
    ids=lambda r: type(r).__name__,
)
def test_other_sources_are_refused(rng):
    with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
        named.geometric(2, alpha="1/2").release([0], rng)


@pytest.mark.parametrize(
    "kind",
    [
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
        np.random.MT19937,
    ],
)
def test_words_are_those_that_the_generator_gives(kind):
    rng, twin = (np.random.Generator(kind(7)) for _ in range(2))
    for size in (1, 0, 1000, 3):
        # An odd number of short draws leaves half of a word behind
        assert rng.integers(0, 100, dtype=np.uint32) == twin.integers(0, 100, dtype=np.uint32)
        words = bit_source(rng)(size)
        expected = twin.integers(0, WORD, size=size, dtype=np.uint64)
        assert (words.dtype, words.tolist()) == (expected.dtype, expected.tolist())


def test_a_generator_of_a_class_of_its_own_is_asked():
    class Own(np.random.Generator):
        def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
            return np.full(size, 5, dtype=dtype)

    assert bit_source(Own(np.random.PCG64(1)))(3).tolist() == [5, 5, 5]
