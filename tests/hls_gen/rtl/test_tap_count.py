"""The count by which an average is divided: the sequencer of an integer pool counts the valid taps of each window."""

import pytest

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from tests.cases import integer_cases

from .bench import run
from .test_sequencer import BIG, FRAMES, Rig, stages

NPU = BIG.changed(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, acc_bits=32)


@pytest.fixture(scope="module")
def rig():
    rig = Rig(NPU, pool=True)
    yield rig
    rig.bench.close()


@pytest.mark.parametrize("order", ["pull", "raster"])
@pytest.mark.parametrize("name", ["int_avg_pool", "int_pool_last"])
def test_valid_taps_are_counted(rig: Rig, name: str, order: str) -> None:
    """At each beat those of its window so far, with pauses; windows at the border have fewer than others."""
    network_plan = plan(dict(integer_cases())[name], [NPU], CompileChoices(map_order=order))
    wanted = []
    for stage in stages(network_plan, pool=True):
        count = 0
        averages = stage.row["average"]
        for _, _, final in stage.taps:
            count += 1
            wanted += [(count, averages)] * stage.words
            count = 0 if final else count
    beats, sources, _ = rig.start(network_plan, stall=0.4, room=0.6)
    beats.names = ("taps", "average")
    run(rig.bench, beats, *sources)
    assert [beat[1:] for beat in beats.values] == wanted * FRAMES
    assert len({count for count, _ in wanted}) > 1
