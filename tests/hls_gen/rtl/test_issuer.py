"""Issuer by itself: how soon words that are given back may be overwritten; the reads of the one memory."""

import pytest

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.issuer import issuer

from .bench import Bench
from .test_sequencer import BIG, spec_of

PULSES = {"fetch": "wait_memory", "beat": "beat", "room": "wait_room"}


@pytest.mark.parametrize("layer_end", [False, True], ids=["by_claim", "by_layer"])
@pytest.mark.parametrize("pool", [False, True], ids=["array", "pool"])
def test_words_given_back_are_free_as_the_flow_model_has_it(pool, layer_end):
    """In a full ring of two words: from the tap that gives one back to the cycle in which it may be written.

    A tap's own words are given back in the cycle after it was taken, those of its layer as it is done.
    """
    npu = BIG.changed(tuple_words=2, pool_words=2)
    with Bench(issuer(Library(32), spec_of(npu, pool))) as bench:
        bench["rst"] = 0
        bench["write"] = 1
        bench.tick(2)
        bench["write"] = 0
        bench.tick(timing.GIVE_BACK + 4)
        assert not bench["has_free"]
        bench.set(room=1, tap_valid=1, tap_claim=1, tap_layer_end=layer_end, tap_hold_words=layer_end)
        assert bench["tap_ready"]
        given = bench.cycle + layer_end
        bench.tick()
        bench.set(tap_valid=0, tap_given_words=not layer_end)
        while not bench["tap_ready"]:
            bench.tick()
        assert bench.cycle == given + 1 - layer_end
        bench.tick()
        bench["tap_given_words"] = 0
        while not bench["has_free"] and bench.cycle < given + 20:
            bench.tick()
        assert bench.cycle - given == timing.GIVE_BACK


def test_a_word_of_the_one_memory_is_read_in_a_cycle_of_its_own():
    """Once for each word, also where the beat then waits for room."""
    npu = BIG.changed(one_memory=True)
    with Bench(issuer(Library(32), spec_of(npu, False))) as bench:
        bench.set(rst=0, write=1)
        bench.tick(3)
        bench.set(write=0, tap_valid=1, tap_claim=1, tap_last=1, tap_words_minus_1=2)
        bench.tick()
        bench["tap_valid"] = 0
        seen = []
        for cycle in range(10):
            bench["room"] = cycle > 7
            seen.append("".join(name[0] for name in ("fetch", "beat", "room") if bench[PULSES[name]]))
            bench.tick()
        assert seen == ["f", "b", "f", "b", "f", "r", "r", "r", "b", ""]
