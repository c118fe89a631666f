"""Bundles of signals: which ports a sequencer has, and bundles inside bundles."""

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.pool_marks import PoolMarks
from bitloom.hls_gen.rtl.sequencer.tap import Tap

from .test_sequencer import spec_of

INTEGER = {"engine": "integer", "feature_bits": 4, "weight_bits": 4, "shift_bits": 0}
INTEGER |= {"inlets": ("host", "loop"), "outlets": ("loop", "host")}
ALL = Npu.of(**INTEGER, depthwise=True, skip_words=8)
MARKS = {"target": 2, "forks": 1, "for_addition": 1, "average": 1, "depthwise": 1}
"""Widths where an NPU has all marks; its maps may go to two outlets or to the skip store."""


@pytest.mark.parametrize(("bundle", "prefix"), [(PoolMarks, ""), (Beat, ""), (Tap, "tap_")])
def test_marks_are_ports_of_the_bundles_that_contain_them(bundle, prefix):
    widths = {port.name: port.width for port in bundle.port_list(spec_of(ALL, True))}
    assert {name: widths.get(f"{prefix}{name}") for name in MARKS} == MARKS


@pytest.mark.parametrize(
    ("npu", "pool", "expected"),
    [
        (ALL, False, set()),  # the array's sequencer has none
        (Npu.of(**INTEGER), True, {"target", "average"}),
        (Npu.of(outlets=("loop",)), True, set()),
    ],
)
def test_a_mark_without_a_field_has_no_port(npu, pool, expected):
    assert {port.name for port in PoolMarks.port_list(spec_of(npu, pool))} == expected


def test_a_bundle_is_made_of_signals_by_name():
    """Of those of an instance, which has other ports as well."""
    tap = Tap.wires(Block("case"), spec_of(ALL, True))
    again = Tap.of({**tap.ports(), "word": tap.valid}).ports()
    assert again.keys() == tap.ports().keys()
    assert all(again[name] is signal for name, signal in tap.ports().items())
    assert again["tap_average"] is tap.marks.average
