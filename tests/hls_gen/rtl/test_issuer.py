"""Issuer by itself: how soon words that are given back may be overwritten."""

from dataclasses import replace

import pytest

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.issuer import issuer
from bitloom.hls_gen.rtl.sequencer.sequencer import SequencerSpec

from .bench import Bench
from .test_sequencer import BIG


@pytest.mark.parametrize("pool", [False, True], ids=["array", "pool"])
def test_words_given_back_are_free_as_the_flow_model_has_it(pool):
    """In a full ring of two words: from the tap that gives one back to the cycle in which it may be written."""
    npu = replace(BIG, tuple_words=2, pool_words=2)
    with Bench(issuer(Library(32), SequencerSpec(npu, pool=pool))) as bench:
        bench["rst"] = 0
        bench["write"] = 1
        bench.tick(2)
        bench["write"] = 0
        bench.tick(timing.GIVE_BACK + 4)
        assert not bench["has_free"]
        bench.set(tap_valid=1, tap_claim=1, tap_given_words=1)
        assert bench["tap_ready"]
        given = bench.cycle
        bench.tick()
        bench["tap_valid"] = 0
        while not bench["has_free"] and bench.cycle < given + 20:
            bench.tick()
        assert bench.cycle - given == timing.GIVE_BACK
