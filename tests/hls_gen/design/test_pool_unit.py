"""Pools that the pool unit has: what the table says of each is true of golden's layer."""

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import AVERAGE, LARGEST, POOLS

BITS = 4


@pytest.mark.parametrize("pool", [pool for pool in POOLS if not pool.divides])
def test_a_tap_beside_the_map_changes_nothing(pool):
    """A line former puts the value in, and all taps of its lines are valid."""
    rng = np.random.default_rng(1)
    taps = rng.integers(-1 << BITS - 1, 1 << BITS - 1, (1, 200, 3, 2))
    valid = rng.random((200, 3)) < 0.5
    valid[:, 0] = True
    beside = pool.beside.value(BITS) if pool.beside else 0
    here = valid[..., None]
    formed = pool.layer.reduced(np.where(here, taps, beside), valid | True)
    np.testing.assert_array_equal(formed, pool.layer.reduced(np.where(here, taps, 0), valid))


def test_engines_have_pools_of_their_own():
    integer = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0)
    assert (Npu.of().pools, integer.pools, integer.changed(pool=False).pools) == ((LARGEST,), (LARGEST, AVERAGE), ())
    assert (integer.array_sequencer.line_flags, integer.pool_sequencer.line_flags) == (("whole",), ("lowest",))
    assert Npu.of().pool_sequencer.line_flags == ()
