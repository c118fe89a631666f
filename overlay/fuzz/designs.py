"""Designs on which nearly all random networks run: nothing is compiled anew for a case.

A load writes every row of a memory, which takes most of a case's time where memories of kernels are large. So these are
no larger than networks need.
"""

from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import FEATURE_UNITS
from bitloom.hls_gen.design.topology import cascade, looped, ring

ROOMY = Npu.of(
    acc_bits=24,
    layers=4,
    tuple_words=8192,
    pool_words=8192,
    pool_tuple_words=1024,
    taps=8192,
    olds=8192,
    jumps=4096,
    pool_taps=2048,
    pool_olds=2048,
    kernel_rows=1 << 13,
    threshold_rows=2048,
    map_words=8192,
)
ROOMY_INTEGER = ROOMY.changed(
    engine="integer",
    feature_bits=8,
    weight_bits=8,
    shift_bits=0,
    acc_bits=32,
    taps=1 << 14,
    olds=1 << 14,
    pool_taps=1 << 14,
    pool_olds=1 << 14,
    pool_words=1 << 14,
)
WIDEST = {name: flat.NUMBERS[name].most for name in flat.NAMES["results"] if name in flat.CAPACITIES}
WIDE = {"feature_bits": 9, **{name: most for name, most in WIDEST.items() if most is not None}}
"""The largest value of all that a requantisation may have. Rows have none; ROOMY says how many there are."""


def _by_name(*designs: Design) -> dict[str, Design]:
    return {design.name: design for design in designs}


RASTER = {"tuple_words": 1024, "pool_words": 1024, "taps": 2, "olds": 2, "jumps": 2, "pool_taps": 2, "pool_olds": 2}
SINGLE = _by_name(
    Design(name="one_lane", npus=(ROOMY.changed(kfp=1, kgp=1, pfp=1, shift_bits=4, kernel_rows=1 << 18),)),
    Design(name="k3_g5", npus=(ROOMY.changed(kfp=3, kgp=5, pfp=4, ol=2, kernel_rows=1 << 14),)),
    Design(name="k8_g8_planes", npus=(ROOMY.changed(kfp=20, kgp=8, pfp=8, ol=3, planes=9),)),
    Design(name="k64_g64", stream_bits=64, npus=(ROOMY.changed(kfp=64, kgp=64, pfp=32, ol=16, kernel_rows=1024),)),
    Design(
        name="k48_g17",
        stream_bits=64,
        npus=(ROOMY.changed(kfp=48, kgp=17, pfp=7, ol=17, planes=7, kernel_rows=1024),),
    ),
    Design(name="int_one_lane", npus=(ROOMY_INTEGER.changed(kfp=1, kgp=1, pfp=1, kernel_rows=1 << 15),)),
    Design(name="int_k3_g5", npus=(ROOMY_INTEGER.changed(kfp=3, kgp=5, pfp=2, ol=2),)),
    Design(
        name="int_k8_g8_w4_f5",
        npus=(
            ROOMY_INTEGER.changed(
                kfp=8, kgp=8, pfp=1, weight_bits=4, feature_bits=5, acc_bits=24, kernels_per_multiplier=3
            ),
        ),
    ),
    Design(name="int_wide", npus=(ROOMY_INTEGER.changed(kfp=4, kgp=6, pfp=3, ol=3, kernels_per_multiplier=2, **WIDE),)),
    Design(
        name="int_k16_g12",
        stream_bits=64,
        npus=(ROOMY_INTEGER.changed(kfp=16, kgp=12, pfp=5, ol=12, kernel_rows=1024),),
    ),
    Design(name="raster", npus=(ROOMY.changed(kfp=5, kgp=6, pfp=3, ol=2, raster=True, **RASTER),)),
    Design(
        name="int_raster",
        npus=(ROOMY_INTEGER.changed(kfp=4, kgp=6, pfp=3, ol=2, accumulators=16, raster=True, **RASTER),),
    ),
)
"""Designs of one NPU. In those called raster, layers of several taps have no room in tables and run by counters."""

BLOCKS = _by_name(
    Design(
        name="int_blocks",
        stream_bits=64,
        npus=(
            ROOMY_INTEGER.changed(
                kfp=12,
                kgp=6,
                pfp=4,
                ol=2,
                accumulators=4,
                kernels_per_multiplier=2,
                kernel_rows=1024,
                depthwise=True,
                pool_kernel_rows=1024,
                pool_scale_rows=256,
                pool_jumps=1024,
                window_former=True,
                former_channels=3,
                former_column=12,
                former_columns=4,
                former_line=32,
                former_ahead=1,
                layers=8,
                **{unit.capacity: (8 if unit.table else 1) * unit.of_a_layer for unit in FEATURE_UNITS} | WIDE,
            ),
        ),
    )
)
"""A pool unit with weights, a window former, and all units behind the requantisation: depthwise convolutions, first
layers of few channels, and lookups."""

IMPORTED = {
    "integer": Design(
        name="int_imported",
        stream_bits=64,
        npus=(
            ROOMY_INTEGER.changed(
                kfp=4,
                kgp=4,
                pfp=4,
                ol=2,
                kernel_rows=4096,
                taps=2048,
                olds=2048,
                jumps=512,
                pool_taps=2048,
                pool_olds=2048,
                depthwise=True,
                pool_kernel_rows=1024,
                pool_scale_rows=256,
                pool_jumps=1024,
                outputs=256,
                layers=64,
                skip_words=4096,
                joined_words=64,
                map_products=1,
                **{unit.capacity: (16 if unit.table else 1) * unit.of_a_layer for unit in FEATURE_UNITS} | WIDE,
            ),
        ),
    ),
    "binary": SINGLE["k3_g5"],
}
"""Designs for networks from files of other tools, by their engine."""

OUTPUTS = _by_name(
    Design(
        name="int_outputs",
        stream_bits=64,
        npus=(ROOMY_INTEGER.changed(kfp=4, kgp=6, pfp=3, ol=2, outputs=256, layers=32, skip_words=8192, **WIDE),),
    )
)
"""Several maps that leave, some of which other layers read: a skip store."""

PARTS = {"tuple_parts": 1, "aheads": 512, "kernel_rows": 2048, "tuple_words": 1024, "pool_words": 1024}
GROUPED = _by_name(
    Design(name="parts", npus=(ROOMY.changed(kfp=4, kgp=4, pfp=4, ol=2, **PARTS),)),
    Design(name="int_parts", npus=(ROOMY_INTEGER.changed(kfp=2, kgp=3, pfp=3, ol=1, **PARTS),)),
    Design(
        name="int_parts_raster",
        npus=(ROOMY_INTEGER.changed(kfp=4, kgp=2, pfp=2, ol=2, accumulators=16, raster=True, **PARTS),),
    ),
)
"""Kernel groups that read parts of tuples: grouped convolutions."""

BINARY = Npu.of(
    kfp=8,
    kgp=8,
    pfp=8,
    ol=2,
    acc_bits=24,
    layers=8,
    tuple_words=256,
    pool_words=256,
    taps=8192,
    olds=8192,
    jumps=4096,
    pool_taps=2048,
    pool_olds=2048,
    kernel_rows=1 << 13,
    threshold_rows=2048,
    map_words=2048,
)
TIGHT = BINARY.changed(tuple_words=64, pool_words=16)
"""Little room for maps, so that rings come to a stop."""
INTEGER = BINARY.changed(
    engine="integer",
    feature_bits=8,
    weight_bits=8,
    shift_bits=0,
    acc_bits=32,
    kfp=4,
    kgp=6,
    pfp=2,
    pool_taps=1 << 14,
    pool_olds=1 << 14,
)


def chain(npus: list[Npu]) -> tuple[Npu, ...]:
    """A pipeline that results may leave after any NPU."""
    last = len(npus) - 1
    return tuple(
        n.changed(inlets=("ring" if k else "host",), outlets=("ring", "host") if k < last else ("host",))
        for k, n in enumerate(npus)
    )


CHAINS = _by_name(
    Design(
        name="cascade",
        npus=cascade(
            [
                BINARY.changed(kfp=5, kgp=7, pfp=3),
                BINARY.changed(kfp=16, kgp=4, pfp=4, ol=4, buffer_words=2, accumulators=16),
                BINARY.changed(kfp=3, kgp=8, ol=8, buffer_words=32),
            ]
        ),
    ),
    Design(
        name="ring_of_2",
        spill_words=12,
        npus=ring([TIGHT.changed(buffer_words=4), TIGHT.changed(kfp=6, kgp=5, pool=False, buffer_words=2)]),
    ),
    Design(
        name="ring_with_loops",
        spill_words=4,
        stream_bits=64,
        npus=looped(
            ring(
                [
                    BINARY.changed(kfp=20, planes=8, shift_bits=0, tuple_words=128, buffer_words=8),
                    BINARY.changed(kfp=4, kgp=9, ol=3, pfp=5, buffer_words=2),
                    BINARY.changed(pool=False, tuple_words=128, buffer_words=4),
                ]
            )
        ),
    ),
    Design(
        name="ring_of_3",
        spill_words=2,
        npus=ring(
            [
                TIGHT.changed(pool=False, buffer_words=2),
                TIGHT.changed(kfp=5, buffer_words=4),
                TIGHT.changed(kfp=9, buffer_words=2),
            ]
        ),
    ),
    Design(
        name="chain",
        stream_bits=64,
        npus=chain(
            [
                BINARY.changed(kfp=33, ol=8, kernel_rows=1024),
                BINARY.changed(kfp=17, pfp=5, buffer_words=2, kernel_rows=1024),
                BINARY.changed(kfp=2, kgp=3, ol=1, pool=False),
                BINARY.changed(kfp=64, kgp=16, ol=16, pfp=16, kernel_rows=1024),
            ]
        ),
    ),
    Design(
        name="integer_cascade",
        npus=cascade(
            [
                INTEGER,
                INTEGER.changed(kfp=3, kgp=8, pfp=3, ol=4, buffer_words=32, bias_fraction_bits=4),
            ]
        ),
    ),
    Design(
        name="integer_ring",
        spill_words=6,
        npus=ring(
            [
                INTEGER.changed(kfp=8, tuple_words=64, pool_words=16, buffer_words=4),
                INTEGER.changed(kfp=3, kgp=8, ol=4, tuple_words=128, pool=False, buffer_words=2),
            ]
        ),
    ),
)
"""Chains and rings of NPUs."""

STREAMED_NPU = ROOMY.changed(kfp=8, kgp=6, pfp=3, ol=2, stream_weights=True, kernel_rows=4096)
STREAMED = _by_name(
    Design(name="streamed", npus=(STREAMED_NPU,)),
    Design(
        name="streamed_ring",
        stream_bits=64,
        spill_words=1024,
        npus=ring([STREAMED_NPU, STREAMED_NPU.changed(kfp=12, kgp=5, pfp=2, ol=1, shift_bits=0)]),
    ),
)
"""Weights that come with every frame."""
