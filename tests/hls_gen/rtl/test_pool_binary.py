"""Pool unit against golden: OR over the taps of a window, word by word, the tuple memory a cycle behind the beat."""

import numpy as np
import pytest

from bitloom.golden.layers.pool import MaxPool
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import LARGEST
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench
from .pool_units import FOLDINGS, PoolWindow, Taps, check_pool_unit, packed

NPUS = {name: Npu.of(kfp=3, kgp=5, ol=2, pool_words=16, **folding) for name, folding in FOLDINGS.items()}


def window(rng: np.random.Generator, npu: Npu, beats: int | None, words: int) -> PoolWindow:
    """A window of 1 to 5 beats of each word."""
    taps = Taps(rng, npu, (beats or int(rng.integers(1, 6)), words), LARGEST, low=0, high=1)
    taps.values &= rng.integers(0, 2, taps.values.shape)  # else nearly all results are 1
    out = [packed(word, 1) for word in taps.reduced(MaxPool)]
    return PoolWindow(words=taps.words(1), ports=lambda beat, word: taps.ports(npu), out=out)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NPUS)
def test_binary_pool_unit(name: str) -> None:
    with Bench(pool_unit(Library(32), NPUS[name])) as bench:
        check_pool_unit(bench, NPUS[name], window, 150)
