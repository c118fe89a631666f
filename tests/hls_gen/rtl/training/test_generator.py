"""The generator against golden: one or two numbers a cycle, any order, and a new state."""

import random

from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.generator import generator
from tests.hls_gen.rtl.bench import Bench


def test_numbers_are_those_of_golden():
    draw = random.Random(0)
    golden = Lfsr(1)
    with Bench(generator(Library(32))) as bench:
        for cycle in range(400):
            count = draw.randrange(3)
            ahead = Lfsr(golden.state).draw(2).tolist()
            bench.set(take_one=int(count == 1), take_two=int(count == 2), set=0)
            assert [bench["first"], bench["second"]] == ahead
            golden.draw(count)
            if cycle % 100 == 99:
                golden = Lfsr(draw.randrange(1, 1 << 32))
                bench.set(set=1, seed=golden.state)
            bench.tick()
