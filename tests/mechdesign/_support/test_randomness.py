"""The source of random bits: the operating system, or a generator of numpy."""

import numpy as np
import pytest

from mechdesign import named
from mechdesign.sampling import Sampler
from tests.tape import WORD


def test_the_secure_source_is_the_operating_system(monkeypatch):
    third = (WORD - 1) // 3
    monkeypatch.setattr(
        "mechdesign._support.randomness.os.urandom",
        lambda size: np.full(size // 8, third - 1, dtype=np.uint64).tobytes(),
    )
    assert Sampler([[1], [2]], 3).draw([0, 0, 0]).tolist() == [0, 0, 0]
    monkeypatch.setattr(
        "mechdesign._support.randomness.os.urandom",
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
        named.geometric(2, "1/2").release([0], rng)
