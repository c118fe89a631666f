"""Work of the layers for the array: operations, beats, and the part of the lanes that is at work in a beat.

An operation is one product of a feature and a weight at a valid tap, added up; in a layer that reads bit planes, or
features of several thermometer bits, all bits of a channel are one operation. Padding at the border of a map takes
neither operations nor beats. Channels and kernels that don't fill KFP and KGP leave lanes that do nothing.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.workloads import Workload

from .compiled import Compiled


@dataclass(frozen=True)
class LayerWork:
    """A weighted layer with its activation and its pool, a frame."""

    name: str
    """The layer's name."""
    npu: int
    """Number of its NPU."""
    operations: int
    beats: int
    """operations, beats: as above."""
    words: int
    word_bytes: float
    """words, word_bytes: words of KFP features of the map that it reads, and bytes of a word."""
    tuple_words: int
    """Words of a tuple."""
    groups: int
    """Kernel groups."""
    lanes_in: float
    """Part of the lanes of a word that carry a feature which a kernel reads."""
    lanes_out: float
    """Part of the PEs that have a kernel."""
    dataflow: str
    """Of the layer."""
    program: str = ""
    """The program that computes it, or a slice of it, of a network in partitions; "" where there is one."""

    @property
    def label(self) -> str:
        """The layer, with its program where the layer doesn't begin it, or is one of several slices."""
        if self.program.partition(".")[0] in (self.name, ""):
            return self.program or self.name
        return f"{self.program}/{self.name}"

    @property
    def busy(self) -> float:
        """Part of the array's lanes that is at work in a beat, 0..1."""
        return self.lanes_in * self.lanes_out


def layers(compiled: Compiled) -> list[LayerWork]:
    """Work of each weighted layer, in the order of the network."""
    return [work for plan, name in zip(compiled.plans, compiled.names) for work in _layers(compiled, plan, name)]


def _layers(compiled: Compiled, plan: Plan, program: str) -> list[LayerWork]:
    """Work of a program's layers."""
    out = []
    for i, (planned, workload) in enumerate(zip(plan.layers, plan.lowered.workloads)):
        p = planned.layer
        n = planned.number
        npu = compiled.build.design.npus[n]
        channels = p.weight.shape[2] // _thermometer_bits(workload)
        lanes = int(np.prod(p.weight.shape[2:]))
        of_kernel = _channel_groups(workload)
        out.append(
            LayerWork(
                name=p.name,
                npu=n,
                operations=len(planned.on_array.taps.tables.index) * channels // of_kernel * p.out_channels,
                beats=planned.beats,
                words=planned.on_array.counts.tuples * planned.words,
                word_bytes=npu.array.word_bits / 8,
                tuple_words=planned.words,
                groups=planned.groups,
                lanes_in=lanes / of_kernel / (planned.tuple_part.words * npu.array.kfp),
                lanes_out=p.out_channels / (planned.groups * npu.array.kgp),
                dataflow=plan.dataflow[i],
                program=program,
            )
        )
    return out


def _channel_groups(workload: Workload) -> int:
    """Groups that a layer's channels are cut into, of which a kernel reads one."""
    segment = workload.segment
    if segment is None:  # a copy
        return 1
    return segment.source.channels // segment.layer.array_shapes(segment.source)["weight"][3]


def _thermometer_bits(workload: Workload) -> int:
    """Channels of bits that stand for one channel of the map that a layer reads."""
    encoding = workload.segment.source.encoding if workload.segment else None
    return encoding.bits if encoding is not None and encoding.kind == "bipolar" else 1
