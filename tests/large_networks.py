"""Networks for pictures of 224 x 224 pixels, with seeded weights of 8 bits."""

from collections.abc import Callable
from dataclasses import dataclass

from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny as tiny
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.partitioning import fitting_partitions
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.platform.boards import Board, board

CLASSES = 1000
PICTURE = Map(height=224, width=224, channels=3, encoding=tiny.UINT8)


def mobilenet(width: float) -> Model:
    """MobileNet v1: 13 pairs of a depthwise convolution and one of 1 x 1."""
    times = round(4 * width)  # MLPerf Tiny's is of width 0.25
    inner = 8 * times
    layers = tiny._weighted(tiny._conv(1, inner, (3, 3), (2, 2), tiny.HALVED))
    n = 2
    for channels, stride in tiny.MOBILENET:
        layers += tiny._separable(n, inner, times * channels, stride)
        n = n + 2
        inner = times * channels
    layers.append(AvgPool(name=f"pool_{n - 1}", kernel=(7, 7), stride=(7, 7)))
    layers += tiny._weighted(Dense(name=f"dense_{n}", out_channels=CLASSES, weight=tiny.INT8), tiny.INT8)
    return tiny.seeded(tiny._network("mobilenet", PICTURE, layers))


def resnet18() -> Model:
    """ResNet-18: a convolution and a pool, four stages of two residual blocks, a dense layer."""
    layers = tiny._weighted(tiny._conv(1, 64, (7, 7), (2, 2), (3, 3, 3, 3)))
    layers.append(MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2), padding=tiny.SAME))
    before = "pool_1"
    n = 2
    for channels in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and channels > 64 else 1
            layers += tiny._weighted(tiny._conv(n, channels, (3, 3), (stride, stride), tiny.SAME, inputs=(before,)))
            first = layers[-1].name
            if stride == 2:
                shortcut = tiny._conv(n + 2, channels, (1, 1), (2, 2), inputs=(before,))
                layers += tiny._weighted(shortcut, tiny.INT9, rounding="twice")
                before = layers[-1].name
            second = tiny._conv(n + 1, channels, (3, 3), (1, 1), tiny.SAME, inputs=(first,))
            layers += tiny._weighted(second, tiny.INT9, rounding="twice")
            layers.append(Add(name=f"add_{n + 3}", inputs=(before, layers[-1].name), encoding=tiny.UINT8))
            before = layers[-1].name
            n += 4
    layers.append(AvgPool(name="pool_2", kernel=(7, 7), stride=(7, 7)))
    layers += tiny._weighted(Dense(name=f"dense_{n}", out_channels=CLASSES, weight=tiny.INT8), tiny.INT8)
    return tiny.seeded(tiny._network("resnet18", PICTURE, layers))


NETWORKS: dict[str, Callable[[], tuple[Model, dict[str, object]]]] = {
    "mobilenet": lambda: (mobilenet(1.0), {"depthwise": True, "pool_line_taps": 3, "lut_products": ("pool",)}),
    "resnet18": lambda: (resnet18(), {"lut_products": ("addition", "pool")}),
}
"""Of each network a function that makes it, and what its NPU has of its own."""
LANES = {
    ("mobilenet", "pynq-z1"): {"kfp": 16, "kgp": 24, "pfp": 16, "ol": 4},
    ("resnet18", "pynq-z1"): {"kfp": 16, "kgp": 24, "pfp": 16, "ol": 4},
    ("mobilenet", "zcu104"): {"kfp": 32, "kgp": 64, "pfp": 64, "ol": 16},
    ("resnet18", "zcu104"): {"kfp": 32, "kgp": 48, "pfp": 32, "ol": 16},
}
"""The NPU of a network on a board."""
STREAM_BITS = 64


@dataclass(frozen=True)
class Built:
    """A network, cut for a board."""

    model: Model
    board: Board
    design: Design
    choices: CompileChoices
    network: CompiledNetwork[Program]
    """Compiled for the design without the digest of its Verilog."""


def folding_of(name: str, board_name: str) -> Npu:
    """The NPU of a network on a board."""
    model, folding = NETWORKS[name]()
    lanes = LANES[name, board_name]
    return small_npu(model).changed(**lanes, raster=True, kernels_per_multiplier=2, **folding)


def built(name: str, board_name: str) -> Built:
    """Cut a network for a board, and compile it."""
    model, _ = NETWORKS[name]()
    target = board(board_name)
    npu = folding_of(name, board_name)
    cuts = fitting_partitions(model, (npu,), target.bram36, CompileChoices(), STREAM_BITS)
    choices = CompileChoices(partitions=cuts)
    design = size_memories(model.network.name, [model], npu, choices, stream_bits=STREAM_BITS)
    return Built(model, target, design, choices, compile_network(model, Manifest.of(design, "0" * 64), choices))
