"""The table of random networks on the simulated board: kinds of networks, and designs that each kind runs on.

Designs have memories for all of these networks, so that nothing is compiled anew for a network; and hardly more, as a
load writes every row, at a word a cycle. A kind says how networks are drawn, what may be chosen for them, and why the
compiler may refuse them; a case says how many networks are drawn for a design, and what must have occurred, so that no
test passes with nothing compared.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler import formed_taps, lines, weight_order
from bitloom.hls_gen.compiler.depthwise import fused
from bitloom.hls_gen.compiler.engine_form import engine_form_of
from bitloom.hls_gen.compiler.segments import segments
from bitloom.hls_gen.compiler.streamed_weights import Placement, WeightLayer, WeightStream
from bitloom.hls_gen.compiler.weight_placement import place
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, looped, pipeline, ring
from bitloom.overlay.fuzz.designs import (
    BINARY,
    CHAINS,
    GROUPED,
    INTEGER,
    PARTS,
    ROOMY,
    ROOMY_INTEGER,
    SINGLE,
    STREAMED,
    chain,
)
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import (
    IntegerChoices,
    binary_network,
    deep_network,
    depthwise_network,
    gated_network,
    grouped_network,
    grown_network,
    integer_network,
    most_planes,
    random_mapping,
    several_outputs,
)
from tests.networks import model_of
from tests.random_networks.accumulators import accumulated_model, accumulated_network
from tests.random_networks.blocks import joined_network, residual_network
from tests.random_networks.first_layers import first_layer_network
from tests.random_networks.graphs import graph_network
from tests.random_networks.mixed import mixed_network, mixed_way
from tests.random_networks.sign_blocks import binary_residual_network

MEMORIES = "must be >= "
"""In the refusal of a network that is too large for a memory or a counter."""
POOLS = ("a pool needs an NPU with a pool unit", "needs an NPU with a pool unit")
WAYS = (
    "must hand maps on in the order in which they come",
    "one must come from each store in order",
    *(f"must have {what}" for what in ("an outlet to NPU", "room for all", "skips_onward")),
    "needs an NPU with outlet host",
    "must wait in one skip store",
    "must come from one NPU",
    "must be of bits",
)
"""In refusals of graphs whose maps can't go where they are needed."""

FEW = {"taps": 2048, "olds": 2048, "jumps": 512, "pool_taps": 1024, "pool_olds": 1024}
FEW |= {"kernel_rows": 1 << 12, "threshold_rows": 512}
"""Rows that most random networks need at most on 4 lanes or more."""

Drawn = tuple[Model, Sequence[int] | None]
"""A model, and the NPU of each layer; None where the compiler chooses."""


@dataclass(frozen=True, kw_only=True)
class NetworkKind:
    """How networks are drawn and compiled.

    Attributes
    ----------
    draw
        Draws a model, and perhaps its mapping, for a design; None where the design can't run what was drawn.
    orders
        Map orders to choose from; where an NPU reads by counters alone, the order is ``raster``.
    chunks
        Tuples of a chunk to choose from; ``lines`` are rows or columns of a map, as the order has them, for several
        NPUs.
    refusals
        Parts of the messages with which the compiler may refuse a network.
    batches
        Frames of each batch that runs without pauses.
    reader_pauses
        Shares of cycles in which the host takes no results in the run with pauses, to choose from.
    surroundings
        Draws what holds while a network is compiled and compared.
    """

    draw: Callable[[Pick, Design], Drawn | None]
    orders: tuple[str, ...] = ("pull", "raster")
    chunks: tuple[int | str | None, ...] = (None,)
    refusals: tuple[str, ...] = ()
    batches: tuple[int, ...] = (4,)
    reader_pauses: tuple[float, ...] = (0.0, 0.4)
    surroundings: Callable[[Pick], AbstractContextManager[Any]] = lambda pick: nullcontext()


@dataclass(frozen=True, kw_only=True)
class BoardCase:
    """Random networks of a kind on a design.

    Attributes
    ----------
    design, kind
        What runs the networks, and what they are.
    quick
        How often each word of ``test_random_networks.check`` must occur in the default tier, which draws no more
        networks then. None: none.
    many, least
        Networks of the slow tier, and how often each word must occur.
    """

    design: Design
    kind: NetworkKind
    many: int
    least: Mapping[str, int]
    quick: Mapping[str, int] | None = None


def one_engine(pick: Pick, design: Design) -> Drawn:
    """A chain of layers for the engine of the first NPU."""
    npu = design.npus[0]
    binary = npu.engine == "binary"
    network = binary_network(pick, most_planes(npu)) if binary else integer_network(pick, IntegerChoices.of(npu))
    return model_of(network, pick.seed(), npu), None


def tall_or_any(pick: Pick, design: Design) -> Drawn | None:
    """A chain of layers, two times of three of tall maps, with any mapping; None where there is none."""
    npu = design.npus[0]
    if pick.integer(0, 2):
        again = design.closed or "loop" in npu.ports.outlets
        network = deep_network(pick, npu.engine, 6 if again else len(design.npus))
    elif npu.engine == "binary":
        network = binary_network(pick, npu.array.planes or 8)
    else:
        network = integer_network(pick, IntegerChoices())
    mapping = random_mapping(pick, design, len(segments(engine_form_of(network))))
    return (model_of(network, pick.seed(), npu), mapping) if mapping else None


def both_engines(pick: Pick, design: Design) -> Drawn:
    """A layer for each NPU of a mapping."""
    mapping = mixed_way(pick, design)
    npus = [design.npus[n] for n in mapping]
    network = mixed_network(pick, [npu.engine for npu in npus], [npu.pool_unit is not None for npu in npus])
    return random_model(network, pick.seed(), 32), mapping


def grouped(pick: Pick, design: Design) -> Drawn:
    npu = design.npus[0]
    choices = None if npu.engine == "binary" else IntegerChoices.of(npu)
    return model_of(grouped_network(pick, choices), pick.seed(), npu), None


def of_integers(maker: Callable[..., Network], pick: Pick, design: Design) -> Drawn:
    npu = design.npus[0]
    return model_of(maker(pick, IntegerChoices.of(npu)), pick.seed(), npu), None


def pooled_at_the_end(pick: Pick, design: Design) -> Drawn:
    """A convolution of 1 x 1, and at the end a pool or a depthwise convolution of few taps: results come fast."""
    npu = design.npus[0]
    encoding = signed(npu.array.feature_bits)
    weight = signed(npu.array.weight_bits)
    channels = pick.integer(1, 9)
    size = {"height": pick.integer(4, 9), "width": pick.integer(4, 9), "channels": pick.integer(1, 9)}
    window = {"kernel": (pick.integer(1, 2), pick.integer(1, 2)), "stride": (1, 1)}
    conv = Conv(name="conv", out_channels=channels, kernel=(1, 1), weight=weight)
    requantise = Requantise(name="features", encoding=encoding)
    end: tuple[Layer, ...] = (pick.of([MaxPool, AvgPool])(name="pool", **window),)
    if pick.flip():
        depthwise = DepthwiseConv(name="depthwise", out_channels=channels, weight=weight, **window)
        end = (depthwise, Requantise(name="end", encoding=encoding))
    network = Network(name="pooled", input=Map(**size, encoding=encoding), layers=(conv, requantise, *end))
    return model_of(network, pick.seed(), npu), None


def looked_up(pick: Pick, design: Design) -> Drawn:
    """Layers with lookups: chains of them, and where the NPU adds, residual blocks and depthwise convolutions."""
    npu = design.npus[0]
    graphs = (residual_network, joined_network, depthwise_network) if npu.has_skip else ()
    network = pick.of((integer_network, *graphs))(pick, IntegerChoices.of(npu))
    return model_of(network, pick.seed(), npu), None


def graphs_on_chains(pick: Pick, design: Design) -> Drawn:
    """Residual blocks, concatenations or depthwise convolutions, one time of two with a mapping that is drawn where
    NPUs may compute several layers in turn."""
    npu = design.npus[0]
    network = pick.of((residual_network, joined_network, depthwise_network))(pick, IntegerChoices.of(npu))
    model = model_of(network, pick.seed(), npu)
    parts = segments(engine_form_of(network))
    if npu.depthwise:
        parts = fused(parts, model)
    if "loop" not in npu.ports.outlets or pick.flip():
        return model, None
    steps = [pick.integer(0, 1) for _ in parts[1:]]
    mapping = [sum(steps[:i]) for i in range(len(parts))]
    last = len(design.npus) - 1
    return model, [n % len(design.npus) if design.closed else min(n, last) for n in mapping]


def signs_of_integers(bits: int, pick: Pick, design: Design) -> Drawn:
    network = binary_residual_network(pick, bits, design.npus[0].results.ol)
    return random_model(network, pick.seed(), 24), None


def accumulated(pick: Pick, design: Design) -> Drawn:
    return accumulated_model(accumulated_network(pick, design.npus[0]), pick.seed()), None


def few_channels(pick: Pick, design: Design) -> Drawn | None:
    """A first layer for a window former."""
    npu = design.npus[0]
    network = first_layer_network(pick, npu)
    return model_of(network, pick.seed(), npu), None


def few_kernel_rows(pick: Pick) -> AbstractContextManager[Any]:
    """Programs use as many kernel rows of each NPU as its largest layer has, and a share of the rest."""
    return kernel_rows(pick.of([0.0, 0.5, 0.9]))


def kernel_rows(share: float) -> AbstractContextManager[Any]:
    """Programs use as many kernel rows of each NPU as its largest layer has, and this share of what its two largest
    need beyond that."""

    def placed(network: str, layers: Sequence[WeightLayer], rows: int, stream: WeightStream) -> Placement:
        each = [layer.rows for layer in layers]
        depth = max(each) + int(share * (min(sum(each), 2 * max(each)) - max(each)))
        assert depth <= rows
        placement = place(network, layers, depth, stream)
        assert (not placement.streamed) == (depth >= sum(each))
        return placement

    return patch.object(weight_order, "place", placed)


def always_formed(_: Pick) -> AbstractContextManager[Any]:
    """The window former makes windows also where that takes longer."""
    return patch.object(formed_taps, "pays", lambda *_: True)


def always_lined(_: Pick) -> AbstractContextManager[Any]:
    """The array takes lines of kernels also where that takes longer."""
    return patch.object(lines, "pays", lambda *_: True)


# --- one NPU, a chain of layers ---------------------------------------------------------------------------------------

CHAIN = NetworkKind(draw=one_engine, refusals=(MEMORIES,), batches=(2,))
CHAIN_DESIGNS = {
    **SINGLE,
    "k8_g8_planes": Design(name="k8_g8_planes", npus=(ROOMY.changed(kfp=20, kgp=8, pfp=8, ol=3, planes=9, **FEW),)),
    "int_k3_g5": Design(name="int_k3_g5", npus=(ROOMY_INTEGER.changed(kfp=3, kgp=5, pfp=2, ol=2, **FEW),)),
    "raster": Design(name="raster", npus=(SINGLE["raster"].npus[0].changed(kernel_rows=1 << 13, threshold_rows=512),)),
}

# --- the flow model: nothing is ideal ---------------------------------------------------------------------------------


def design(*npus: Npu, **more: int) -> Design:
    """A design of a table, which says the name."""
    return Design(name="design", npus=npus, **more)


def to_host(first: Npu, *others: Npu, spill_words: int) -> Design:
    """A ring that results may leave after any NPU."""
    npus = [npu.changed(inlets=("ring",), outlets=("ring", "host")) for npu in (first, *others)]
    return design(npus[0].changed(inlets=("host", "ring")), *npus[1:], spill_words=spill_words)


def named(designs: Mapping[str, Design], prefix: str = "") -> dict[str, Design]:
    """The designs of a table with their names, behind a prefix."""
    return {name: replace(one, name=f"{prefix}{name}") for name, one in designs.items()}


UNEVEN = NetworkKind(
    draw=one_engine,
    orders=("pull", "raster", "columns"),
    chunks=(1, 2, 1000, "lines"),
    batches=(1, 2, 4),
    refusals=(MEMORIES, *POOLS, "needs buffers of "),
)
SMALL_BINARY = Npu.of(acc_bits=24, layers=4, tuple_words=128, pool_words=256, map_words=512, **FEW)
BYTES = {"engine": "integer", "feature_bits": 8, "weight_bits": 8, "shift_bits": 0, "acc_bits": 32}
SMALL_INTEGER = SMALL_BINARY.changed(**BYTES, tuple_words=256)
FORMER = {"former_channels": 3, "former_column": 12, "former_columns": 5, "former_line": 15, "window_former": True}
"""A window former; ``few_channels`` draws networks for it, others pass it by."""
ROOM = {"tuple_words": 1024}
FOUR_LANES = {"kfp": 4, "kgp": 6, "pfp": 3, "ol": 2}
FIVE_LANES = FOUR_LANES | {"kfp": 5}
ALL_EIGHT = dict.fromkeys(FOUR_LANES, 8)
UNEVEN_DESIGNS = named(
    {
        "integer": design(SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=2, ol=5, **FORMER)),
        "ring": to_host(
            SMALL_BINARY.changed(kfp=4, kgp=5, pfp=4, ol=2),
            SMALL_BINARY.changed(kfp=6, kgp=3, pfp=3, ol=3, buffer_words=8),
            spill_words=4,
        ),
        "binary": design(SMALL_BINARY.changed(kfp=20, kgp=8, pfp=8, ol=3, planes=8, **ROOM)),
        "raster": design(SMALL_BINARY.changed(**FIVE_LANES, raster=True, **ROOM, kernel_rows=1 << 14)),
        "accumulators": design(SMALL_INTEGER.changed(**FOUR_LANES, accumulators=16, **ROOM)),
        "integer_ring": to_host(
            SMALL_INTEGER.changed(kfp=4, kgp=6, pfp=2, ol=1),
            SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=3, ol=4, buffer_words=32),
            spill_words=2,
        ),
        "without_pool": to_host(
            SMALL_INTEGER.changed(kfp=4, kgp=5, ol=2, pool=False),
            SMALL_INTEGER.changed(kfp=6, kgp=3, ol=3, pool=False, buffer_words=8),
            spill_words=4,
        ),
        "one_memory": to_host(
            SMALL_BINARY.changed(kfp=4, kgp=5, pfp=4, ol=2, one_memory=True),
            SMALL_BINARY.changed(kfp=9, kgp=1, pfp=3, buffer_words=8, kernel_binariser=True, one_memory=True),
            spill_words=4,
        ),
        "one_memory_groups": design(
            SMALL_INTEGER.changed(kfp=9, kgp=3, weight_bits=2, pfp=3, ol=2, accumulators=16, **ROOM, one_memory=True)
        ),
        "ring_of_3": to_host(
            SMALL_BINARY.changed(**ALL_EIGHT, buffer_words=4),
            SMALL_BINARY.changed(**ALL_EIGHT),
            SMALL_BINARY.changed(kfp=5, kgp=7, pfp=3, ol=1, buffer_words=32),
            spill_words=2,
        ),
        "planes_former": design(
            SMALL_BINARY.changed(kfp=37, kgp=8, pfp=8, ol=3, planes=8, **ROOM, raster=True, **FORMER), stream_bits=64
        ),
        "ring_former": to_host(
            SMALL_BINARY.changed(kfp=18, kgp=5, pfp=4, ol=2, accumulators=16, **FORMER, former_ahead=1),
            SMALL_BINARY.changed(kfp=6, kgp=3, pfp=3, **FORMER),
            spill_words=4,
        ),
        "formers": to_host(
            SMALL_INTEGER.changed(kfp=9, kgp=5, pfp=4, ol=2, **FORMER),
            SMALL_INTEGER.changed(kfp=6, kgp=4, pfp=3, ol=2, accumulators=8, buffer_words=32, **FORMER),
            SMALL_INTEGER.changed(kfp=4, kgp=3, pool=False, **FORMER),
            spill_words=4,
        ),
        "wide": design(
            SMALL_INTEGER.changed(kfp=16, kgp=12, pfp=5, ol=12, **FORMER | {"former_channels": 6, "former_ahead": 1}),
            stream_bits=64,
        ),
    }
)
"""Results that leave slowly, narrow pools, words cut and put together, small tuple memories, buffers and spill
stores."""

FORMED = NetworkKind(
    draw=few_channels,
    orders=("raster", "auto", "columns"),
    batches=(1, 2, 4),
    surroundings=always_formed,
    refusals=(MEMORIES, *POOLS),
)

# --- chains and rings of one engine -----------------------------------------------------------------------------------

ORDERS = ("raster", "raster", "pull")
CHAINED = NetworkKind(draw=tall_or_any, orders=ORDERS, chunks=(1, 2, 5, 1000), refusals=(MEMORIES, *POOLS))

# --- chains and rings in which engines take turns ---------------------------------------------------------------------

MIXED = NetworkKind(draw=both_engines, chunks=(1, 2, 1000), refusals=(MEMORIES, *POOLS))
MIXED_BINARY = BINARY.changed(tuple_words=1024, **FEW)
MIXED_INTEGER = INTEGER.changed(tuple_words=1024, **FEW)
MIXED_CHAINS = {
    "cascade": cascade(
        [
            MIXED_INTEGER,
            MIXED_BINARY.changed(kfp=32, kgp=7, pfp=3, buffer_words=4),
            MIXED_INTEGER.changed(kfp=8, ol=4, buffer_words=32, accumulators=16),
        ]
    ),
    "alternating": pipeline(
        [
            MIXED_INTEGER.changed(kfp=17, kgp=5, ol=5),
            MIXED_BINARY.changed(kfp=33, pfp=1, pool_words=1024),
            MIXED_INTEGER.changed(kfp=33, kgp=3, ol=1, pfp=7),
            MIXED_BINARY.changed(kfp=1, kgp=3, ol=3, kernel_rows=1 << 14),
        ]
    ),
}
MIXED_RINGS = {
    "ring": (
        MIXED_INTEGER.changed(kfp=3, ol=3, buffer_words=16),
        MIXED_BINARY.changed(kfp=20, kgp=9, ol=9, pfp=4, buffer_words=8),
    ),
    "looped_ring": (
        MIXED_INTEGER.changed(kgp=3, ol=3, buffer_words=16),
        MIXED_BINARY.changed(kfp=4, kgp=5, ol=1, pfp=3, buffer_words=8),
    ),
    "ring_with_loops": (
        MIXED_BINARY.changed(kfp=18, planes=8, shift_bits=0),
        MIXED_INTEGER.changed(kfp=18, kgp=4, ol=4, pfp=5),
        MIXED_BINARY.changed(kfp=5, pool=False),
        MIXED_INTEGER.changed(kfp=1, pool=False, buffer_words=64),
    ),
}
MIXED_DESIGNS = named(
    {
        "cascade": design(*MIXED_CHAINS["cascade"]),
        "ring": design(*ring(MIXED_RINGS["ring"]), spill_words=64),
        "looped_ring": design(*looped(ring(MIXED_RINGS["looped_ring"])), spill_words=64),
        "ring_with_loops": design(*looped(ring(MIXED_RINGS["ring_with_loops"])), spill_words=64, stream_bits=64),
        "alternating": design(*MIXED_CHAINS["alternating"]),
    }
)

# --- grouped convolutions ---------------------------------------------------------------------------------------------

GROUPS = NetworkKind(draw=grouped)
GROUPED_DESIGNS = GROUPED | named(
    {
        "k8": design(ROOMY_INTEGER.changed(**ALL_EIGHT, accumulators=4, **PARTS), stream_bits=64),
        "bits_raster": design(ROOMY.changed(kfp=2, kgp=6, pfp=3, ol=3, raster=True, **PARTS)),
        "one_memory": design(ROOMY_INTEGER.changed(kfp=3, kgp=4, pfp=4, ol=2, one_memory=True, **PARTS)),
    }
)
"""Tables and counters, one and several accumulators, both engines; words of few channels, and words that groups
share."""

# --- graphs of integer layers -----------------------------------------------------------------------------------------

LANES = "which it adds, must have the lanes"
READERS = "two layers at most must need a map"
RESIDUAL, JOINED, GRAPHS = (
    NetworkKind(draw=partial(of_integers, strategy), refusals=(LANES, READERS, MEMORIES, *POOLS))
    for strategy in (residual_network, joined_network, graph_network)
)
GRAPH_SIZES = {"layers": 24, "tuple_words": 512, "pool_words": 512, "pool_tuple_words": 64, **FEW}
GRAPH_SIZES |= {"map_words": 1024, "skip_words": 1024}
"""Memories for graphs of many small layers."""
GRAPH_NPU = Npu.of(**BYTES | {"feature_bits": 9}, multiplier_bits=31, round_twice=1, joined_words=16, **GRAPH_SIZES)
POOL_LINES = {"pool_line_taps": 3, "pool_lines": 2, "pool_lane_lines": 2, "pool_line_words": 256}
IN_LUTS = {"lut_products": ("pool",), "pool_scale_ram": "distributed"}
OF_FOUR = {"kgp": 4, "pfp": 4}
GRAPH_K4_NPU = GRAPH_NPU.changed(
    kfp=4, **OF_FOUR, ol=2, aheads=512, depthwise=True, **POOL_LINES, **IN_LUTS, lookup_rows=24 * 256, map_products=1
)
GRAPH_K4 = Design(name="k4", npus=(GRAPH_K4_NPU,))
"""One design of graphs, depthwise convolutions, lines of pools, lookups and products: one model to compile."""
GRAPH_DESIGNS = {"k4": GRAPH_K4} | named(
    {
        "k8": design(GRAPH_NPU.changed(kfp=8, kgp=6, pfp=4, ol=2, accumulators=16), stream_bits=64),
        "k2_ol4": design(GRAPH_NPU.changed(kfp=2, **OF_FOUR, ol=4, raster=True, aheads=512)),
        "without_pool": design(GRAPH_NPU.changed(kfp=4, kgp=8, ol=4, pool=False, skip_words=63)),
    }
)
"""Foldings in which words hold several steps, or steps several words; tables with and without tuples that are claimed
ahead, and counters; one and several accumulators; block RAM and LUT RAM; pool units with weights and without."""

DEPTHWISE = NetworkKind(draw=partial(of_integers, depthwise_network))
POOL_WEIGHTS = {"pool_kernel_rows": 1024, "pool_scale_rows": 256, "pool_jumps": 1024}
ALONE = {"skip_words": 0, "joined_words": 0}
ROUNDINGS = {"half_even": 1, "bias_fraction_bits": 6}
WEIGHTED_POOL = GRAPH_NPU.changed(
    kfp=4, **OF_FOUR, ol=2, aheads=512, depthwise=True, **ALONE, **ROUNDINGS, **POOL_WEIGHTS
)
DEPTHWISE_DESIGNS = {"k4": GRAPH_K4} | named(
    {
        "k8": design(WEIGHTED_POOL.changed(kfp=8, kgp=6, pfp=6, ol=2, accumulators=16), stream_bits=64),
        "raster": design(WEIGHTED_POOL.changed(kfp=3, **OF_FOUR, ol=4, raster=True)),
        "narrow": design(WEIGHTED_POOL.changed(kfp=2, kgp=3, pfp=1, ol=1)),
    }
)
"""Tables and counters, one and several accumulators, words of the pool unit that are several steps or one."""
SLOWLY_READ = NetworkKind(draw=pooled_at_the_end, reader_pauses=(0.9,))
"""Pool units with weights whose results wait for the host."""
LINES_BELOW = {"pool_lines": 3, "pool_line_words": 256}
TWO_LINES = {"pool_lines": 2, "pool_line_words": 256}
SHARED_LANES = {"pool_lane_lines": 2, "pool_line_words": 256}
LINE_DESIGNS = named(
    {
        "raster": design(WEIGHTED_POOL.changed(kfp=3, **OF_FOUR, ol=4, raster=True, pool_line_taps=2, **LINES_BELOW)),
        "wide": design(
            WEIGHTED_POOL.changed(kfp=8, kgp=6, pfp=6, ol=2, accumulators=16, pool_line_taps=5), stream_bits=64
        ),
        "integer": design(SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=2, ol=5, pool_line_taps=3)),
        "binary": design(SMALL_BINARY.changed(**FIVE_LANES, raster=True, **ROOM, **TWO_LINES, kernel_rows=1 << 14)),
        "shared": design(WEIGHTED_POOL.changed(kfp=3, kgp=4, pfp=16, ol=4, pool_line_taps=3, **SHARED_LANES)),
        "shared_integer": design(SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=64, ol=2, pool_line_taps=2, **SHARED_LANES)),
        "shared_binary": design(
            SMALL_BINARY.changed(**FIVE_LANES | {"pfp": 256}, raster=True, **ROOM, **SHARED_LANES, kernel_rows=1 << 14)
        ),
    },
    "lines_",
)
"""Several taps a cycle, of a line or of lines one below the other, also of lines that share lanes: pool units with
weights, of integers and of bits without; tables and counters; products of pool results in LUTs."""
TAPS = {"position_words": 32, "tuple_words": 1024}
ARRAY_CASCADES = {
    "cascade": cascade(
        [
            INTEGER.changed(kfp=6, line_taps=2, **TAPS),
            INTEGER.changed(kfp=3, kgp=7, buffer_words=4),
            INTEGER.changed(kfp=9, line_taps=3, buffer_words=2, accumulators=16, **TAPS),
        ]
    ),
    "mixed": cascade(
        [
            MIXED_INTEGER.changed(kfp=6, line_taps=3, **TAPS),
            MIXED_BINARY.changed(kfp=32, line_taps=2, kgp=7, pfp=3, buffer_words=4, **TAPS),
        ]
    ),
}
EIGHT_LANES = {"kfp": 8, "kgp": 6, "pfp": 4, "ol": 2}
ARRAY_LINES = named(
    {
        "k6": design(GRAPH_K4_NPU.changed(kfp=6, line_taps=3, **TAPS)),
        "raster": design(
            GRAPH_NPU.changed(**EIGHT_LANES, line_taps=2, raster=True, aheads=512, accumulators=16, **TAPS),
            stream_bits=64,
        ),
        "integer": design(SMALL_INTEGER.changed(kfp=9, line_taps=3, kgp=8, pfp=2, ol=5, **TAPS)),
        "former": design(SMALL_INTEGER.changed(kfp=12, line_taps=4, kgp=4, pfp=2, ol=2, raster=True, **TAPS, **FORMER)),
        "binary": design(SMALL_BINARY.changed(kfp=10, line_taps=5, kgp=6, pfp=3, ol=2, pool_line_taps=3, **TAPS)),
        "planes": design(
            SMALL_BINARY.changed(kfp=20, line_taps=4, **OF_FOUR, ol=4, raster=True, planes=4, shift_bits=0, **TAPS),
            stream_bits=64,
        ),
        "parts": design(ROOMY_INTEGER.changed(kfp=6, line_taps=3, kgp=3, pfp=3, ol=1, **PARTS | TAPS)),
        **{name: design(*npus) for name, npus in ARRAY_CASCADES.items()},
    },
    "array_lines_",
)
"""Several words of a map side by side in the array: tables and counters, both engines, planes of the input, parts of
tuples, a window former in front of the first layer, chains."""
LINED_CHAINS, LINED_TALL, LINED_GRAPHS, LINED_DEPTHWISE, LINED_JOINED = (
    replace(kind, surroundings=always_lined, orders=("raster", "auto"))
    for kind in (UNEVEN, CHAINED, GRAPHS, DEPTHWISE, JOINED)
)
"""Lines of kernels are formed wherever they can be."""

# --- lookups ----------------------------------------------------------------------------------------------------------

LOOKED_UP = NetworkKind(draw=looked_up, refusals=(LANES, READERS, MEMORIES, *POOLS))
LOOKUP_CHAIN = [
    SMALL_INTEGER.changed(**FOUR_LANES, lookup_rows=512, accumulators=16),
    SMALL_INTEGER.changed(kfp=6, **OF_FOUR, ol=4, lookup_rows=512, buffer_words=32),
]
LOOKUP_DESIGNS = {"k4": GRAPH_K4} | named(
    {
        "raster": design(GRAPH_NPU.changed(kfp=3, **OF_FOUR, ol=4, raster=True, **ALONE, lookup_rows=4 * 256)),
        "narrow": design(SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=2, ol=1, feature_bits=6, lookup_rows=256)),
        "chain": design(*cascade(LOOKUP_CHAIN)),
    },
    "lookups_",
)
"""Block RAM and LUT RAM; features of more than 8 bits, of 8 and of fewer; in front of additions and of pool units with
weights."""

# --- products of maps -------------------------------------------------------------------------------------------------


def of_products(pick: Pick, design: Design) -> Drawn:
    """Graphs in which maps are multiplied, where others are added."""
    npu = design.npus[0]
    network = gated_network(pick, pick.of((residual_network, graph_network))(pick, IntegerChoices.of(npu)))
    return model_of(network, pick.seed(), npu), None


PRODUCTS_OF_MAPS = NetworkKind(draw=of_products, refusals=(LANES, READERS, MEMORIES, *POOLS))
BY_LUTS = {"map_products": 1, "lut_products": ("addition",)}
PRODUCT_DESIGNS = {"k4": GRAPH_K4} | named(
    {
        "k8": design(GRAPH_NPU.changed(**EIGHT_LANES, accumulators=16, **BY_LUTS), stream_bits=64),
        "narrow": design(GRAPH_NPU.changed(kfp=2, **OF_FOUR, ol=4, raster=True, aheads=512, map_products=1)),
    },
    "products_",
)
"""DSP blocks and LUTs; factors that are narrower than features."""

# --- maps that grow ---------------------------------------------------------------------------------------------------


def of_maps_that_grow(pick: Pick, design: Design) -> Drawn:
    """Chains of layers, depthwise convolutions, graphs where the NPU adds, and networks of bits, in which maps grow."""
    npu = design.npus[0]
    if npu.engine == "binary":
        network = binary_network(pick, most_planes(npu))
    else:
        graphs = (depthwise_network, graph_network) if npu.has_skip else ()
        network = pick.of((integer_network, *graphs))(pick, IntegerChoices.of(npu))
    return model_of(grown_network(pick, network), pick.seed(), npu), None


GROWN = NetworkKind(draw=of_maps_that_grow, refusals=(LANES, READERS, MEMORIES, *POOLS))
GROWN_SIZES = dict.fromkeys(("taps", "olds", "pool_taps", "pool_olds"), 1 << 14)
GROWN_SIZES |= {"layers": 24, "jumps": 1 << 13, "tuple_words": 1024, "map_words": 4096}
GROWN_DESIGNS = {"k6": ARRAY_LINES["k6"]} | named(
    {
        "raster": design(GRAPH_NPU.changed(kfp=2, **OF_FOUR, ol=4, raster=True, accumulators=16, **GROWN_SIZES)),
        "integer": design(SMALL_INTEGER.changed(kfp=3, kgp=8, pfp=2, ol=5, **FORMER | GROWN_SIZES)),
        "binary": design(SMALL_BINARY.changed(**FIVE_LANES, planes=0, kernel_rows=1 << 13, **GROWN_SIZES)),
    },
    "grown_",
)
"""Tables and counters, lines of kernels, a window former, pool units with weights, bits."""

# --- networks with several outputs ------------------------------------------------------------------------------------


def of_several_outputs(pick: Pick, design: Design) -> Drawn:
    """Chains of layers, depthwise convolutions and graphs, of which several maps leave."""
    npu = design.npus[0]
    choices = IntegerChoices.of(npu)
    network = pick.of((integer_network, depthwise_network, residual_network, graph_network))(pick, choices)
    network = several_outputs(pick, network, choices)
    return model_of(network, pick.seed(), npu), None


MANY_SIZES = {"outputs": 4, "map_words": 4096, "skip_words": 4096, "layers": 32, "tuple_words": 2048}
MANY_SIZES |= {"taps": 1 << 14, "olds": 1 << 14}
MANY_NPU = GRAPH_K4_NPU.changed(pool_words=2048, **MANY_SIZES)
MANY_CHAIN = [MANY_NPU, MANY_NPU.changed(kgp=6, accumulators=16, buffer_words=8)]
OUTPUT_DESIGNS = named(
    {
        "k4": design(MANY_NPU),
        "k8": design(GRAPH_NPU.changed(**EIGHT_LANES, accumulators=16, pool_words=2048, **MANY_SIZES), stream_bits=64),
        "raster": design(GRAPH_NPU.changed(kfp=2, **OF_FOUR, ol=4, raster=True, pool_words=2048, **MANY_SIZES)),
        "without_pool": design(GRAPH_NPU.changed(kfp=4, kgp=8, ol=4, pool=False, **MANY_SIZES), stream_bits=64),
        "cascade": design(*cascade([npu.changed(depthwise=False) for npu in MANY_CHAIN])),
    },
    "outputs_",
)
SUMS = ("sums that leave must be computed by NPU",)
OUTPUTS = NetworkKind(draw=of_several_outputs, refusals=(LANES, READERS, MEMORIES, *POOLS, *WAYS, *SUMS))

# --- graphs on chains and rings (docs/decisions/0024) -----------------------------------------------------------------

CHAINED_GRAPHS = NetworkKind(
    draw=graphs_on_chains, chunks=(1, 2, 1000), refusals=(LANES, READERS, MEMORIES, *POOLS, *WAYS)
)
WIDE_FORMER = {"former_channels": 4, "former_column": 20, "former_columns": 10, "former_line": 20}
WIDE_FORMER["window_former"] = True
NARROW = GRAPH_NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512, buffer_words=8)
WIDER = NARROW.changed(kgp=6, accumulators=16, buffer_words=4, aheads=0)
WITHOUT_POOL = NARROW.changed(kgp=8, ol=4, pool=False, skip_words=63, buffer_words=2)
NARROW_WEIGHTED, WIDER_WEIGHTED = (npu.changed(depthwise=True, **POOL_WEIGHTS) for npu in (NARROW, WIDER))
WEIGHTED = [NARROW_WEIGHTED, WIDER_WEIGHTED]
LOOPED_WEIGHTED = looped(ring([NARROW_WEIGHTED.changed(**WIDE_FORMER), WIDER_WEIGHTED]))
GRAPH_CHAINS = named(
    {
        "looped_ring": design(*looped(ring([NARROW, WIDER])), spill_words=512),
        "depthwise": design(*LOOPED_WEIGHTED, spill_words=512),
        "depthwise_ring": design(*ring(WEIGHTED), spill_words=512),
        "depthwise_chain": design(*chain(WEIGHTED * 3)),
        "depthwise_cascade": design(*cascade(WEIGHTED[::-1])),
        "cascade": design(*cascade([WIDER.changed(**WIDE_FORMER), NARROW, WIDER]), stream_bits=64),
        "ring_of_2": design(*ring([NARROW, WIDER]), spill_words=63),
        "ring_of_3": design(*ring([WITHOUT_POOL, NARROW, WIDER]), spill_words=512),
        "pipeline": design(*chain([NARROW, WIDER, NARROW.changed(raster=True), NARROW, WIDER, WITHOUT_POOL])),
    }
)
"""Stores of block RAM and LUT RAM; a window former, and pool units with weights in all NPUs. Of a pipeline results may
leave anywhere. NPUs that are looped may compute layers in turn: they are chains as well as rings, by the mapping."""
BEHIND_LINES = [
    NARROW.changed(kfp=6, line_taps=3, **TAPS),
    WIDER.changed(kfp=4, line_taps=2, **TAPS),
    NARROW.changed(kfp=6, line_taps=3, raster=True, **TAPS),
]
GRAPHS_BEHIND_LINES = Design(name="array_lines_graphs", npus=cascade(BEHIND_LINES))
"""Copies of maps whose lines are formed."""

# --- residual networks of bits (docs/decisions/0022) ------------------------------------------------------------------

SIGNS = NetworkKind(draw=partial(signs_of_integers, 9), refusals=(MEMORIES, *POOLS))
SIGNS_NPU = Npu.of(acc_bits=25, multiplier_bits=31, half_even=1, bias_fraction_bits=2, skip_bits=9, **GRAPH_SIZES)
SIGNS_DESIGNS = named(
    {
        "k4": design(SIGNS_NPU.changed(kfp=4, **OF_FOUR, ol=2, aheads=512)),
        "planes": design(
            SIGNS_NPU.changed(kfp=9, kgp=6, pfp=4, ol=3, accumulators=16, planes=4, shift_bits=0), stream_bits=64
        ),
        "raster": design(SIGNS_NPU.changed(kfp=2, kgp=4, pfp=2, ol=4, raster=True, aheads=512)),
        "without_pool": design(SIGNS_NPU.changed(kfp=8, kgp=8, ol=1, pool=False, skip_words=63, aheads=256)),
    }
)
"""Foldings with tables, with and without tuples that are claimed ahead, and counters; one and several accumulators;
block RAM and LUT RAM; bit planes side by side and one after another; with and without a pool unit."""

CHAINED_SIGNS = NetworkKind(draw=partial(signs_of_integers, 8), refusals=(MEMORIES, *POOLS, *WAYS))
KEPT = SIGNS_NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512, buffer_words=4)
"""Integers wait in the NPU's skip store."""
ONWARD = KEPT.changed(skips_onward=1, outlets=("ring", "loop", "host"))
"""Integers wait in the skip store of the next NPU."""
WIDE_ONWARD = ONWARD.changed(kfp=8, aheads=256, accumulators=16, skip_words=63, buffer_words=8)
SIGNS_CHAINS = named(
    {
        "ring_of_2": design(*ring([ONWARD, WIDE_ONWARD]), spill_words=512),
        "looped_ring": design(*looped(ring([ONWARD, ONWARD.changed(pool=False)])), spill_words=512),
        "chain": design(*chain([*[ONWARD, WIDE_ONWARD] * 4, ONWARD.changed(skips_onward=0)])),
        "cascade": design(*cascade([KEPT, KEPT.changed(kfp=8)])),
    }
)

# --- weights that come with every frame (spec B18) --------------------------------------------------------------------

STREAMED_WEIGHTS = NetworkKind(draw=one_engine, surroundings=few_kernel_rows, batches=(1, 4), refusals=(MEMORIES,))
SECOND = ROOMY.changed(kfp=12, kgp=5, pfp=2, ol=1, shift_bits=0, stream_weights=True)
K20_PLANES = ROOMY.changed(kfp=20, kgp=8, pfp=8, ol=3, planes=8, accumulators=8, stream_weights=True)
FIRST = ROOMY.changed(kfp=5, kgp=7, pfp=4, ol=3, stream_weights=True)
STREAMED_DESIGNS = STREAMED | named(
    {"k20_g8_planes": design(K20_PLANES, stream_bits=64), "cascade": design(*cascade([FIRST, SECOND, SECOND]))}
)

# --- products that are counted, or whose OR is taken ------------------------------------------------------------------

ACCUMULATED = NetworkKind(draw=accumulated)
PRODUCTS = Npu.of(acc_bits=16, layers=6, tuple_words=2048, pool_words=2048, map_words=2048, **FEW)
BITS_ALONE = PRODUCTS.changed(shift_bits=0)
COLLECTED = 360
BOTH, OR_WORDS = {"accumulate": "both"}, {"accumulate": "or_words"}
ACCUMULATOR_NPUS = {
    "or": BITS_ALONE.changed(kfp=5, kgp=6, pfp=4, ol=2, accumulate="or", acc_bits=4),
    "or_accumulators": BITS_ALONE.changed(kfp=3, kgp=4, pfp=3, ol=2, accumulate="or", accumulators=16),
    "both": PRODUCTS.changed(kfp=6, kgp=5, pfp=5, ol=3, **BOTH),
    "both_planes": BITS_ALONE.changed(kfp=11, kgp=4, pfp=4, planes=4, **BOTH, accumulators=8),
    "collect_popcount": BITS_ALONE.changed(kfp=4, kgp=3, pfp=4, ol=3, collect=COLLECTED),
    "collect_or": BITS_ALONE.changed(kfp=1, kgp=4, pfp=2, accumulate="or", collect=COLLECTED),
    "collect_both": BITS_ALONE.changed(kfp=3, kgp=7, pfp=3, ol=4, **BOTH, collect=COLLECTED),
    "words": BITS_ALONE.changed(kfp=6, kgp=5, pfp=3, ol=1, **OR_WORDS, word_lanes=3, accumulators=8),
    "words_planes": BITS_ALONE.changed(kfp=12, kgp=4, pfp=4, planes=4, ol=2, **BOTH, word_lanes=4, accumulators=8),
    "words_shift": PRODUCTS.changed(kfp=4, kgp=6, pfp=2, ol=2, word_lanes=2),
    "collect_words": BITS_ALONE.changed(kfp=4, kgp=3, pfp=4, ol=1, **BOTH, collect=COLLECTED, word_lanes=2),
}
ACCUMULATORS = named(
    {name: design(npu, stream_bits=64 if name == "both" else 32) for name, npu in ACCUMULATOR_NPUS.items()}
)

# --- the table --------------------------------------------------------------------------------------------------------


def cases(
    name: str,
    kind: NetworkKind,
    designs: Mapping[str, Design],
    many: int,
    least: Mapping[str, int],
    quick: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, BoardCase]:
    """A case for each design. ``many`` networks of the slow tier, in which ``least`` must occur, but for cases of
    ``OTHER``; ``quick`` has what must occur in those of the default tier by the design's name."""
    table = {}
    for key, design in designs.items():
        count, words = OTHER.get(f"{name}-{key}", (many, least))
        occur = (quick or {}).get(key)
        table[f"{name}-{key}"] = BoardCase(design=design, kind=kind, many=count, least=words, quick=occur)
    return table


def these(designs: Mapping[str, Design], *names: str) -> dict[str, Design]:
    return {name: designs[name] for name in names}


def exact(count: int) -> dict[str, int]:
    return {"exact": count}


SHAPES = {"plain": 1, "parts": 1, "several parts": 1}
OTHER: dict[str, tuple[int, dict[str, int]]] = {
    "chain-int_wide": (200, exact(200)),
    **{f"chain-{name}": (50, exact(25)) for name in ("raster", "int_raster")},
    "formed-formers": (120, {"formed": 40, "formed behind": 10}),
    "formed-wide": (80, {"formed": 25, "rows together": 5}),
    **{
        f"chained-{name}": (160, {"exact or stuck": 15, "exact": 3, "stuck": 3})
        for name in ("ring_of_2", "integer_ring")
    },
    "chained-ring_of_3": (80, exact(15)),
    "grouped-k8": (120, SHAPES),
    "graph-without_pool": (50, exact(10)),
    "depthwise-k4": (60, {"lines": 1, "depthwise": 1, "behind copies": 3}),
    "array_lines_of_tall-planes": (60, exact(20)),
    "outputs-cascade": (40, exact(10)),
    "outputs-without_pool": (40, exact(10)),
    "graph_chain-depthwise": (50, {"exact": 5, "copies": 1, "depthwise": 1}),
    **{f"graph_chain-depthwise_{name}": (50, {"exact": 5, "depthwise": 1}) for name in ("ring", "chain", "cascade")},
    "signs-k4": (50, exact(48)),
    "signs-without_pool": (50, exact(10)),
    "signs_chain-cascade": (40, {"exact": 10, "plain": 10}),
    **{f"streamed-{name}": (40, {"streamed": 13}) for name in ("streamed_ring", "cascade")},
}
"""Cases for which the slow tier draws another number of networks, of which other ones must occur."""
OF_CHANNELS = these(UNEVEN_DESIGNS, "integer", "planes_former", "ring_former", "wide", "formers")
SMALL_LINES = these(ARRAY_LINES, "integer", "binary", "planes")
QUICK_CHAINS = {"k3_g5": exact(4), "k8_g8_planes": exact(2), "int_k3_g5": exact(3), "raster": exact(3)}
GRAPH_LINES = these(ARRAY_LINES, "k6", "raster")
MANY_GROWTHS = {"exact": 20, "growth": 10, "nearest": 2, "mirrored": 5}
QUICK_ACCUMULATORS = {name: exact(4) for name in ("words_planes", "collect_both")}
QUICK_FORMERS = {"integer": {"formed": 2}, "planes_former": {"formed": 3}}
LINES_OF_POOLS = {"lines": 1, "depthwise": 1}
BOTH_POOLS = {"plain": 1, "depthwise": 1}
CASES: dict[str, BoardCase] = {
    **cases("chain", CHAIN, CHAIN_DESIGNS, 40, exact(30), QUICK_CHAINS),
    **cases("uneven", UNEVEN, UNEVEN_DESIGNS, 40, exact(5), {"integer": exact(2), "ring": exact(2)}),
    **cases("formed", FORMED, OF_CHANNELS, 50, {"formed": 17}, QUICK_FORMERS),
    **cases("chained", CHAINED, CHAINS, 40, exact(15), {"ring_of_2": {"exact or stuck": 2}}),
    **cases("mixed", MIXED, MIXED_DESIGNS, 40, {"both engines": 15}, {"looped_ring": {"both engines": 2}}),
    **cases("grouped", GROUPS, GROUPED_DESIGNS, 60, SHAPES, {name: {"parts": 1} for name in ("int_parts", "parts")}),
    **cases("residual", RESIDUAL, GRAPH_DESIGNS, 50, {**exact(15), "shortcut last": 3}, {"k4": exact(4)}),
    **cases("concatenated", JOINED, GRAPH_DESIGNS, 100, exact(30), {"k4": exact(3)}),
    **cases("graph", GRAPHS, GRAPH_DESIGNS, 50, exact(30), {"k4": exact(4)}),
    **cases(
        "depthwise",
        DEPTHWISE,
        DEPTHWISE_DESIGNS,
        60,
        {**BOTH_POOLS, "behind copies": 3},
        {"k4": {"lines": 1, "depthwise": 1, "shared lanes": 1}},
    ),
    **cases("slowly_read", SLOWLY_READ, DEPTHWISE_DESIGNS, 40, {"plain": 5, "depthwise": 5}, {"k4": BOTH_POOLS}),
    **cases("lines", DEPTHWISE, these(LINE_DESIGNS, "raster", "wide"), 60, LINES_OF_POOLS, {"raster": {"lines": 6}}),
    **cases("lines_of_pools", UNEVEN, these(LINE_DESIGNS, "integer", "binary"), 40, {"exact": 5, "lines": 1}),
    **cases("shared_lanes", DEPTHWISE, these(LINE_DESIGNS, "shared"), 60, {"shared lanes": 5, "depthwise": 10}),
    **cases(
        "shared_lanes_of_pools",
        UNEVEN,
        these(LINE_DESIGNS, "shared_integer", "shared_binary"),
        100,
        {"exact": 5, "shared lanes": 2},
    ),
    **cases(
        "array_lines", LINED_GRAPHS, GRAPH_LINES, 100, {"exact": 40, "array lines": 5}, {"k6": {"array lines": 10}}
    ),
    **cases("array_lines_of_depthwise", LINED_DEPTHWISE, these(ARRAY_LINES, "k6"), 40, {"array lines": 1}),
    **cases("array_lines_of_joined", LINED_JOINED, GRAPH_LINES, 40, exact(10)),
    **cases("array_lines_of_any", LINED_CHAINS, SMALL_LINES, 40, exact(10)),
    **cases("array_lines_of_tall", LINED_TALL, SMALL_LINES, 60, {"exact": 20, "array lines": 3}),
    **cases("array_lines_formed", FORMED, these(ARRAY_LINES, "former"), 40, {"formed": 10, "array lines": 2}),
    **cases("array_lines_grouped", GROUPS, these(ARRAY_LINES, "parts"), 60, {"plain": 1, "parts": 1}),
    **cases("array_lines_chained", CHAINED, these(ARRAY_LINES, "cascade"), 40, exact(10)),
    **cases("array_lines_chain", CHAINED_GRAPHS, {"cascade": GRAPHS_BEHIND_LINES}, 50, {"exact": 10, "array lines": 1}),
    **cases("array_lines_of_mixed", MIXED, these(ARRAY_LINES, "mixed"), 40, {"both engines": 10}),
    **cases("lookups", LOOKED_UP, LOOKUP_DESIGNS, 60, {"exact": 20, "lookups": 10}, {"k4": {"lookups": 2}}),
    **cases("products", PRODUCTS_OF_MAPS, PRODUCT_DESIGNS, 50, {"exact": 20, "products": 10}, {"k4": {"products": 2}}),
    **cases("grown", GROWN, GROWN_DESIGNS, 60, MANY_GROWTHS, {"k6": {"growth": 2, "nearest": 1}}),
    **cases("outputs", OUTPUTS, OUTPUT_DESIGNS, 40, {"exact": 20, "outputs": 20}, {"k4": {"outputs": 2}}),
    **cases("graph_chain", CHAINED_GRAPHS, GRAPH_CHAINS, 50, exact(5), {"looped_ring": {"plain": 1, "copies": 1}}),
    **cases("signs", SIGNS, SIGNS_DESIGNS, 50, exact(45), {"k4": exact(3)}),
    **cases("signs_chain", CHAINED_SIGNS, SIGNS_CHAINS, 40, {"exact": 10, "onward": 1}, {"ring_of_2": {"onward": 1}}),
    **cases("accumulated", ACCUMULATED, ACCUMULATORS, 40, exact(40), QUICK_ACCUMULATORS),
    **cases("streamed", STREAMED_WEIGHTS, STREAMED_DESIGNS, 60, {"streamed": 20}, {"streamed": {"streamed": 1}}),
}
"""All random networks on the simulated board, by kind and design."""
