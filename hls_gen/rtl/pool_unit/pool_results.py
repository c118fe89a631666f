"""Pool results: sums of a pool unit with weights become features, OL at a time.

    sums[OL] --> + bias --> x multiplier --> rounded, shifted, clipped --> skid register --> features[OL]

Golden twins: golden/layers/requantise.py, golden/layers/pool.py. Sums of a depthwise convolution have a bias, a
multiplier and a shift each, a row of memory ``pool_scales`` a step. An average is its sum times the reciprocal of the
number of features, 2^s / number rounded up, shifted by s and rounded, halves away from zero; and what is no average is
the average of one feature. Exact: the reciprocal is too large by less than 2^-s, so the quotient by less than half of
1 / number, which is how near to a half it can be without being one.

A step a cycle. Layers follow one another without a gap: the row of the next one is read ahead.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import COUNT_BITS, LAYER_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, const, resize, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, split
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.layer_at_work import LayerAtWork
from bitloom.hls_gen.rtl.results.requantise import requantise
from bitloom.hls_gen.rtl.results.step import Step, give, ready_ahead


def pool_results(library: Library, npu: Npu) -> Block:
    """Results unit of a pool unit with weights: makes features of its sums.

    Module ``pool_results``. Stream ``in`` of steps: OL sums of ``acc_bits``; ``last`` at the end of a tuple; side: last
    of its map, where the map goes, and above that the number of features. Stream ``features``, whose side bits are
    those without that number.
    """
    header = Header(
        __doc__,
        rate="one step of OL results a cycle",
        latency=f"{timing.latencies(npu).pool_activation} cycles from a step to its features",
        parameters=npu.values("ol", "acc_bits", "feature_bits", "multiplier_bits"),
    )
    b = Block(library.name("pool_results", npu), header)
    rows, scales, reciprocals = (memory_of(npu, name) for name in ("pool_results", "pool_scales", "reciprocals"))
    bus = LoadBus.ports(b, library.stream_bits, [rows, scales, reciprocals])
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    side_bits = npu.map_mark_bits + COUNT_BITS
    source = Stream.input(b, "in", npu.results.ol * npu.array.acc_bits, last=True, side_bits=side_bits)

    # # #

    free, free_before = b.wire("free"), b.wire("free_before")
    go = b.wire("go")
    layer_end = b.wire("map_ends")
    b.comment("The layer at work, and the row of its scales that the step at hand meets.")
    layer = LayerAtWork.of(b, library, bus, rows, last_layer, go, layer_end)
    style = present(npu.pool_weights).scale_ram
    busy = b.wire("busy", 1, source.valid & layer.loaded)
    # ``free``, the register for many: the bits of a row in LUT RAM ask for it
    scale = layer.factors(b, library, bus, scales, "scale_base", free, busy, source.last, style)
    b.comment("What the step at hand is requantised by.")
    marks = split(b, source.side, [*npu.map_marks, ("count", COUNT_BITS)], "at_")
    layer_end.assign(source.last & marks["map_last"])
    reciprocal = library.loadable(b, reciprocals, bus, marks["count"])["reciprocal"]
    wide = npu.of_pool_results
    acc = npu.array.acc_bits
    step = Step(
        free=free,
        free_before=free_before,
        busy=busy,
        sums=[b.wire(f"sum_{k}", acc, bits(source.data, k * acc, acc)) for k in range(npu.results.ol)],
        row=_row(b, wide, layer.now["depthwise"], scale, reciprocal),
        layer={**layer.now, **{name: marks[name] for name, _ in npu.way_fields}},
        tuple_last=source.last,
        map_last=marks["map_last"],
        to_outlets=True,
    )
    go.assign(busy & free_before)
    in_luts = "pool" in npu.results.lut_products
    stages = timing.pool_activation_stages(npu)
    ready = ready_ahead(b)
    give(b, library, requantise(b, wide, step, stages, ready, in_luts=in_luts), ready)
    source.ready.assign(layer.loaded & free_before)
    return b


def _row(b: Block, wide: Npu, depthwise: Signal, scale: dict[str, Signal], reciprocal: Signal) -> dict[str, Signal]:
    """Bias, multiplier and shift of each lane: those of the layer's scales, or of an average."""
    shift = wide.reciprocal_bits - 1 + wide.results.bias_fraction_bits
    average = {
        "bias": const(0, wide.biased_bits),
        "multiplier": resize(reciprocal, wide.results.multiplier_bits),
        "shift": const(shift, wide.scale_shift_bits),
    }
    row = {}
    for k in range(wide.results.ol):
        for name, plain in average.items():
            w = width(plain)
            key = f"{name}_{k}"
            value = scale.get(key, const(1, w))  # an NPU has no multipliers where all are 1
            row[key] = b.wire(f"chosen_{key}", w, choose(depthwise, value, plain, w))
    return row
