"""The two sequencers of an NPU: which kind each is of, and that memories and tables follow from it."""

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.sequencer_kind import AHEADS, FLAGS, JUMPS, OLDS, SequencerKind

INTEGER = {"engine": "integer", "feature_bits": 4, "weight_bits": 4, "shift_bits": 0}
WEIGHTED = {**INTEGER, "depthwise": True}

ROWS = (FLAGS, OLDS, JUMPS)
AHEAD = (FLAGS, OLDS, JUMPS, AHEADS)
KINDS = [
    ({}, SequencerKind(tables=ROWS), SequencerKind()),
    ({"raster": True}, SequencerKind(counters=True, tables=ROWS), SequencerKind(counters=True)),
    ({"aheads": 4}, SequencerKind(tables=AHEAD), SequencerKind()),
    (WEIGHTED, SequencerKind(tables=ROWS), SequencerKind(tables=ROWS)),
    (
        {**WEIGHTED, "raster": True, "aheads": 4},
        SequencerKind(counters=True, tables=AHEAD),
        SequencerKind(counters=True, tables=ROWS),
    ),
]
"""Values of an NPU; the kind of its array's sequencer, and of its pool unit's."""


@pytest.mark.parametrize(("values", "array", "pool_unit"), KINDS)
def test_kinds_of_both_sequencers(values, array, pool_unit):
    npu = Npu.of(**values)
    assert npu.array_sequencer.kind == array
    assert present(npu.pool_sequencer).kind == pool_unit


def test_no_pool_unit_has_no_sequencer():
    npu = Npu.of(pool=False)
    assert npu.pool_sequencer is None
    assert npu.sequencers == (npu.array_sequencer,)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SequencerKind(), True),
        (SequencerKind(counters=True), False),
        (SequencerKind(tables=AHEAD), False),
    ],
)
def test_tuples_are_claimed_one_by_one(kind, expected):
    assert kind.claims_one_by_one == expected
