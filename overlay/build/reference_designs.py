"""Reference designs: which network runs on which hardware. The demo and all figures use them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bitloom.golden import zoo as networks
from bitloom.golden.names import meant, shown
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import SizedDesign, Sizing, sized_design
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring

from .small_npu import INTEGER, small_npu

DIGITS = Npu.of(kfp=32, kgp=16, pfp=16, ol=4, planes=6)
"""digits-cnn's one NPU. Its first layer reads 5-bit pixels as 6 bit planes side by side."""

ENDS_FIRST = INTEGER.changed(kfp=3, kgp=16, ol=2, pool=False)
"""bnn-int8-ends: the NPU of the first layer, whose weights have 8 bits."""
ENDS_MIDDLE = Npu.of(kfp=32, kgp=16, pfp=16, ol=4, shift_bits=0)
"""bnn-int8-ends: the NPU of the binary layers behind the first one."""


def binary_npu(kfp: int, kgp: int, ol: int = 1, pool: int = 0, **more: Any) -> Npu:
    """An NPU for binary layers of a pipeline, without any parts that these layers don't need.

    Parameters
    ----------
    kfp, kgp, ol
        Its folding: channels and kernels at a time, and results that leave at a time.
    pool
        PFP of its pool unit; 0: it has none.
    more
        Further parameters of ``Npu``.
    """
    return Npu.of(kfp=kfp, kgp=kgp, ol=ol, pfp=pool or 1, pool=pool > 0, shift_bits=0, **more)


@dataclass(frozen=True, kw_only=True)
class ReferenceDesign:
    """A design that figures are given for: a network, and hardware for it."""

    network: str
    """Name of the network, for ``zoo.load``."""
    npus: tuple[Npu, ...]
    """The chain of NPUs. Sizes of memories are ignored here: ``design`` finds them."""
    stream_bits: int = 32
    """Width of both streams, 32 or 64."""
    choices: CompileChoices = field(default_factory=CompileChoices)
    """How the network is compiled."""
    equal: bool = False
    """Whether all NPUs get memories of the same sizes."""
    also: tuple[str, ...] = ()
    """Further networks that run on the same design."""

    def models(self) -> list[Model]:
        """The model of the network, then those of the networks in ``also``."""
        return [networks.load(name) for name in (self.network, *self.also)]

    def design(self, name: str, models: list[Model], stream_weights: bool = False) -> Design:
        """The hardware, with memories as large as the models need.

        Parameters
        ----------
        name
            Name of the design.
        models
            Of ``models()``.
        stream_weights
            Whether weights come over the stream in each frame, instead of staying in the kernel memories.
        """
        return self.sized(name, models, stream_weights).design

    def sized(self, name: str, models: list[Model], stream_weights: bool = False) -> SizedDesign:
        """The result of ``design``, with the lowered networks; parameters as there."""
        sizing = Sizing(equal=self.equal, stream_weights=stream_weights)
        return sized_design(name, models, self.npus, self.choices, self.stream_bits, sizing)


def cnv_by_layers(first: Sequence[Npu], rest: Npu) -> ReferenceDesign:
    """CNV with an NPU for each of its first layers, which go on at the same time, and one for the rest, layer after
    layer: nearly all work is in the first four.

    Parameters
    ----------
    first
        The NPU of each first layer. It gets a window former, and the first one bit planes.
    rest
        The NPU of the others.
    """
    formed = [npu.changed(window_former=True, planes=0 if n else 8) for n, npu in enumerate(first)]
    *chain, _ = pipeline([*formed, rest])
    layers = 9
    return ReferenceDesign(
        network="cnv-w1a1",
        npus=(*chain, rest.changed(inlets=("ring", "loop"), outlets=("loop", "host"))),
        stream_bits=64,
        choices=CompileChoices(chunk="rows:1", mapping=tuple(min(n, len(first)) for n in range(layers))),
    )


PULL = CompileChoices(map_order="pull")

REFERENCE_DESIGNS: dict[str, ReferenceDesign] = {
    "digits-cnn": ReferenceDesign(network="digits-cnn", npus=(DIGITS,)),
    "digits-cnn-pipeline": ReferenceDesign(
        network="digits-cnn",
        npus=pipeline(
            [
                binary_npu(7, 16, 4, planes=6),
                binary_npu(16, 16, 4, pool=8),
                binary_npu(32, 8, 2),
                binary_npu(32, 2),
            ]
        ),
        choices=PULL,
    ),
    "cifar-quick-int8": ReferenceDesign(network="cifar-quick-int8", npus=(INTEGER,), choices=PULL),
    "cifar-quick-int8-former": ReferenceDesign(
        network="cifar-quick-int8",
        npus=(INTEGER.changed(pfp=2, window_former=True),),  # with PFP 1 conv_1 takes less time than its pool
    ),
    "cifar-quick-int8-cascade3": ReferenceDesign(network="cifar-quick-int8", npus=cascade([INTEGER] * 3), choices=PULL),
    "cifar-quick-int8-ring2": ReferenceDesign(network="cifar-quick-int8", npus=ring([INTEGER] * 2), choices=PULL),
    "bnn-int8-ends": ReferenceDesign(
        network="bnn-int8-ends",
        npus=cascade([ENDS_FIRST, ENDS_MIDDLE, INTEGER.changed(kgp=2, pool=False)]),
        choices=PULL,
    ),
    "bnn-int8-ends-ring2": ReferenceDesign(
        network="bnn-int8-ends",
        npus=(
            ENDS_FIRST.changed(inlets=("host", "ring"), outlets=("ring", "host")),
            ENDS_MIDDLE.changed(inlets=("ring", "loop"), outlets=("ring", "loop")),
        ),
        choices=CompileChoices(map_order="pull", mapping=(0, 1, 1, 1, 1, 0)),
    ),
    "cnv-w1a1": ReferenceDesign(
        network="cnv-w1a1",
        npus=pipeline(
            [
                binary_npu(27, 24, 4, planes=8),
                binary_npu(64, 16, 2, pool=8),
                binary_npu(64, 6),
                binary_npu(64, 8, pool=8),
                binary_npu(32, 3),
                binary_npu(8, 3, accumulators=128),
                binary_npu(8, 2),
                binary_npu(16, 2, accumulators=256),
                binary_npu(4, 1),
            ]
        ),
        stream_bits=64,
        choices=CompileChoices(
            map_order="pull", dataflow={"conv_5": "input_stationary", "dense_7": "input_stationary"}
        ),
    ),
    "cnv-w1a1-max": ReferenceDesign(
        network="cnv-w1a1",
        npus=(
            binary_npu(27, 64, 8, planes=8, inlets=("host",), outlets=("ring",)),
            binary_npu(64, 64, 8, pool=8, inlets=("ring", "loop"), outlets=("ring", "loop"), kernel_ram="block"),
            binary_npu(32, 10, inlets=("ring", "loop"), outlets=("loop", "host")),
        ),
        stream_bits=64,
        choices=CompileChoices(map_order="pull", mapping=(0, 1, 1, 1, 2, 2, 2, 2, 2)),
    ),
    "cnv-w1a1-z020": cnv_by_layers(
        [
            binary_npu(63, 64, 16),
            binary_npu(116, 64, 16, pool=32),
            binary_npu(83, 32, 8),
            binary_npu(231, 16, 4, pool=4, kernel_ram="block"),
        ],
        binary_npu(64, 20, 4, kernel_ram="block"),  # 1,022 rows of kernels: no LUTs choose among block RAM
    ),
    "cnv-w1a1-zcu104": cnv_by_layers(
        [
            binary_npu(243, 64, 64, accumulators=8),
            binary_npu(576, 64, 64, pool=64, accumulators=8),
            binary_npu(144, 64, 32),
            binary_npu(192, 64, 16, pool=16, kernel_ram="block"),
        ],
        binary_npu(128, 32, 8, kernel_ram="block"),
    ),
    "cnv-w1a1-ring3": ReferenceDesign(
        network="cnv-w1a1",
        npus=ring([Npu.of(kfp=72, kgp=16, pfp=16, ol=4, planes=8, shift_bits=0)] * 3),
        stream_bits=64,
        choices=PULL,
        equal=True,
        also=("digits-cnn",),
    ),
    "cnv-w1a1-shared": ReferenceDesign(
        network="cnv-w1a1",
        npus=(Npu.of(kfp=64, kgp=16, pfp=16, ol=4, planes=8, accumulate="both", raster=True),),
        stream_bits=64,
        choices=CompileChoices(map_order="raster"),
        also=("lfc-w1a1", "digits-cnn", "digits-or"),
    ),
    "lfc-w1a1": ReferenceDesign(
        network="lfc-w1a1",
        npus=pipeline(
            [
                binary_npu(49, 32, 2),
                binary_npu(64, 32, 2, accumulators=64),
                binary_npu(64, 32, 2),
                binary_npu(2, 10),
            ]
        ),
        stream_bits=64,
        choices=CompileChoices(dataflow={"dense_1": "input_stationary"}),
    ),
}
"""Reference designs by name. A network's own design has the network's name."""


def reference_design(name: str) -> ReferenceDesign:
    """The reference design of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in REFERENCE_DESIGNS:
        known = ", ".join(REFERENCE_DESIGNS)
        raise ValueError(f"design: name must be one of {known}, got {shown(name)}{meant(name, REFERENCE_DESIGNS)}")
    return REFERENCE_DESIGNS[name]


def default_npu(model: Model) -> Npu:
    """The one NPU that runs a network by default.

    It is the NPU of the network's reference design if that design has one NPU; else `small_npu`.
    """
    reference = REFERENCE_DESIGNS.get(model.network.name)
    if reference and len(reference.npus) == 1:
        return reference.npus[0]
    return small_npu(model)
