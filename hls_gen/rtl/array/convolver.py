"""Convolver: KGP processing elements on the same features, each with the weights of its own kernel (spec B10, B11).

    beat (first, last, kernel row) --> kernel memory --> KGP x PE --> results[KGP x acc_bits]
    feature word, a cycle later -----------------------^

Nothing stalls inside. ``result_valid`` says that the results of a window are there; they hold until those of the next
window.
"""

from collections.abc import Callable

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.array import kernel_ram_style
from bitloom.hls_gen.design.memories.memory_map import kernel_store, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import Or, ProductSum, Reducer
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, side_by_side, width
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram, split
from bitloom.hls_gen.rtl.primitives.text import Header

from .kernel_binariser import kernel_binariser
from .lane_pairs import lane_pairs
from .multipliers import multipliers
from .operand_memory import operand_memory, word_ports
from .pe import pe
from .pe_collect import pe_collect
from .pe_integer import pe_integer
from .pe_or import pe_or
from .pe_signed import pe_signed
from .pe_sums import pe_sums

STREAMED = """
Rows of streamed layers are written while other layers are computed, by turns at both ends of the kernel memory
(hls_gen/compiler/streamed_weights.py).
"""
"""Added to the header where weights are streamed."""
FEATURES = "features of the beat of the cycle before, lane 0 low"
"""Meaning of the port ``features``."""


def processing_element(npu: Npu) -> tuple[Callable[[Library, Npu], Block], int, int]:
    """Which processing element an NPU has, and when its inputs and its result are due.

    Parameters
    ----------
    npu : Npu
        The NPU whose array it is part of.

    Returns
    -------
    tuple
        The function that makes it; its latency in cycles from features to result; and the cycles from features to
        ``valid`` and ``first``. ``last`` and ``code`` are due one cycle before the result.
    """
    latency = timing.pe_latency(npu)
    reducer = npu.array.reducer
    if reducer.collects:
        return pe_collect, latency, 0
    if npu.adds_integers:
        return pe_signed, latency, latency - 1
    kinds: dict[type[Reducer], Callable[[Library, Npu], Block]] = {ProductSum: pe_integer, Or: pe_or}
    return kinds.get(type(reducer), pe), latency, latency - 1


def convolver(library: Library, npu: Npu) -> Block:
    """The array of processing elements with its kernel memory: module ``convolver``."""
    _, latency, begins = processing_element(npu)
    at_total = timing.ARRAY_READ + latency - 1  # cycles from a beat to the edge at which its total becomes the result
    b = Block(library.name("convolver", npu), _header(npu))
    memory = memory_of(npu, "kernels")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    beat = b.input("beat", means="there is a beat")
    first = b.input("first", means="the beat is the first of its window")
    last = b.input("last", means="the beat is the last of its window")
    row = b.input("kernel_row", npu.array.row_bits, means="row of the kernel memory with the beat's weights")
    offset_bits = npu.array.offset_bits
    several = npu.array.accumulators > 1
    offset = b.input("offset", offset_bits, means="what is taken from the window's sums later") if offset_bits else None
    given = None if npu.array.one_memory else b.input("features", npu.array.word_bits, means=FEATURES)
    result_valid = b.output("result_valid", means="the results of a window are there, from this cycle on")
    result_offset = b.output("result_offset", offset_bits, means="offset of that window") if offset_bits else None
    results = b.output("results", npu.array.kgp * npu.array.acc_bits, means="results of that window, kernel 0 low")
    slot = b.input("slot", npu.array.slot_bits, means="accumulator of the beat") if several else None
    drain = b.input("drain_slot", npu.array.slot_bits, means="accumulator whose results are read") if several else None

    # # #

    b.comment("Kernel memory: a row a beat, with the weights of all PEs.")
    stored = _binarised(b, library, npu, bus) if npu.array.kernel_binariser else bus
    if given is None:
        part, features = _operands(b, library, npu, stored, {"beat": beat, "kernel_row": row})
    else:
        style = kernel_ram_style(npu, npu.array.kernel_ram)
        # a row is read in every cycle: whether there is a beat comes late, and all bits of the row would wait for it
        part = library.loadable(b, kernel_store(npu), stored, row, read=const(1, 1), style=style)
        features = given
    b.comment("What comes with a beat, as late as the PEs have its word, its sum and its result.")
    valid_line = delayed(b, beat, "beat", timing.ARRAY_READ + begins, init=0)
    ahead = not (several or npu.array.reducer.collects)
    # reset where hundreds of PEs read the last one: else synthesis makes a shift register, whose output comes late
    first_line = delayed(b, first, "first", timing.ARRAY_READ + begins - ahead, init=0 if several else None)
    last_line = delayed(b, b.wire("ends", 1, beat & last), "last", at_total + 1, init=0)
    window = {"valid": valid_line[-1]}
    if ahead:
        window["clear"] = b.wire("clear", 1, valid_line[-2] & first_line[-1])
    else:
        window["first"] = first_line[-1]
    slots = (
        {"slot": delayed(b, slot, "slot", at_total, npu.array.slot_bits, init=0)[-1], "drain_slot": drain}
        if several
        else {}
    )
    if not several:
        window["last"] = last_line[at_total]
    if result_offset is not None:
        late_offset = delayed(b, offset, "offset", at_total, npu.array.acc_bits)[-1]
        result_offset.assign(_kept_offset(b, library, npu, last_line[at_total], late_offset, slots))
    if npu.code_bits:
        window["code"] = delayed(b, part["code"], "code", latency - 1, npu.code_bits)[-1]
    window |= {"features": features, **slots}
    place = _sharing_elements if npu.array.kernels_per_multiplier > 1 else _elements
    results.assign(place(b, library, npu, part["weights"], window))
    result_valid.assign(last_line[-1])
    return b


def _binarised(b: Block, library: Library, npu: Npu, bus: LoadBus) -> LoadBus:
    """The load bus behind the binariser of kernels."""
    unit = library.get(kernel_binariser, library, npu)
    ports = {name: b.wire(name, width(port)) for name, port in unit.m.io_variable.items() if name.startswith("bits_")}
    b.instance(unit, "kernel_binariser", **bus.to(unit), **ports)
    valid, bank, row, data = (ports.get(f"bits_{name}") for name in ("valid", "bank", "row", "data"))
    return LoadBus({"kernels": valid}, bank, row, data)


def _operands(
    b: Block, library: Library, npu: Npu, bus: LoadBus, ports: dict[str, Signal]
) -> tuple[dict[str, Signal], Signal]:
    """Fields of the beat's row, and its features, from the one memory."""
    unit = library.get(operand_memory, library, npu)
    row = b.wire("kernels_row", kernel_store(npu).width)
    features = b.wire("features", npu.array.word_bits)
    words = {name: b.input(name, w, means=means) for name, (w, means) in word_ports(npu).items()}
    b.instance(unit, "operand_memory", **bus.to(unit), **words, **ports, row_data=row, features=features)
    return split(b, row, list(kernel_store(npu).widths.items()), "kernels_"), features


def _header(npu: Npu) -> Header:
    """The convolver's contract, with the lanes that share a weight where there are some."""
    shared = ("lanes_per_weight", "lane_step") if npu.array.lanes_per_weight > 1 else ()
    named = ("kfp", "kgp", "acc_bits", "accumulators", *shared)
    return Header(
        __doc__ + STREAMED * npu.loader.stream_weights,
        rate="one beat a cycle",
        latency=f"{timing.array_latency(npu)} cycles from a window's last beat to result_valid",
        parameters=npu.values(*named),
    )


def _elements(b: Block, library: Library, npu: Npu, weights: Signal, shared: dict[str, Signal]) -> Signal:
    """The processing elements, each with its part of the row of weights; their results side by side, kernel 0 low."""
    if npu.adds_integers:
        b.comment("Sums and differences of lanes, once for all processing elements.")
        pairs = library.get(lane_pairs, library, npu)
        shared["operands"] = b.wire("operands", pairs.port_widths["operands"])
        b.instance(pairs, "lane_pairs", features=shared.pop("features"), operands=shared["operands"])
    b.comment("Processing elements: the same word, each with its own weights.")
    block = library.get(processing_element(npu)[0], library, npu)
    outputs = [b.wire(f"result_{k}", npu.array.acc_bits) for k in range(npu.array.kgp)]
    w = npu.row_weights * npu.array.weight_bits
    for k, out in enumerate(outputs):
        pe_weights = bits(weights, k * w, w)
        if npu.array.lanes_per_weight > 1:
            pe_weights = b.wire(f"weights_{k}", npu.array.kfp, _shared(pe_weights, npu))
        b.instance(block, f"pe_{k}", weights=pe_weights, result=out, **shared)
    return side_by_side(outputs)


def _sharing_elements(b: Block, library: Library, npu: Npu, weights: Signal, window: dict[str, Signal]) -> Signal:
    """As `_elements`, where processing elements share multipliers. One that is left over has multipliers of its own."""
    b.comment("Processing elements: the same word, each with its own weights; so many share their multipliers.")
    outputs = [b.wire(f"result_{k}", npu.array.acc_bits) for k in range(npu.array.kgp)]
    w = npu.array.kfp * npu.array.weight_bits
    lanes = npu.array.kfp * (npu.array.feature_bits + npu.array.weight_bits)
    features = window.pop("features")
    for first in range(0, npu.array.kgp, npu.array.kernels_per_multiplier):
        sharing = range(first, min(first + npu.array.kernels_per_multiplier, npu.array.kgp))
        operands = {"features": features, "weights": bits(weights, first * w, len(sharing) * w)}
        if len(sharing) == 1:
            b.instance(
                library.get(pe_integer, library, npu), f"pe_{first}", **operands, result=outputs[first], **window
            )
            continue
        products = {f"products_{j}": b.wire(f"products_{k}", lanes) for j, k in enumerate(sharing)}
        products |= {f"carries_{j}": b.wire(f"carries_{k}", npu.array.kfp) for j, k in enumerate(sharing) if j}
        b.instance(library.get(multipliers, library, npu, len(sharing)), f"multipliers_{first}", **operands, **products)
        for j, k in enumerate(sharing):
            ports = {"products": products[f"products_{j}"], **({"carries": products[f"carries_{j}"]} if j else {})}
            b.instance(library.get(pe_sums, library, npu, j > 0), f"pe_{k}", **ports, result=outputs[k], **window)
    return side_by_side(outputs)


def _shared(weights: Signal, npu: Npu) -> Signal:
    """A weight for every lane: those that lanes share are stored once, and wires alone lead to all of them."""
    of_lanes = npu.array.weight_of_lanes
    step = npu.array.lane_step
    return Cat(
        *[bits(weights, of_lanes[i], min(step, npu.array.kfp - i)) for i in reversed(range(0, npu.array.kfp, step))]
    )


def _kept_offset(
    b: Block, library: Library, npu: Npu, ends: Signal, offset: Signal, slots: dict[str, Signal]
) -> Signal:
    """The offset of a window, as long as its results are kept: in a register, or in a place for each accumulator."""
    if not slots:
        held_offset = b.reg("held_offset", npu.array.acc_bits, init=None)
        b.on(ends, (held_offset, offset))
        return held_offset
    kept = b.wire("kept_offset", npu.array.acc_bits)
    store = ram(library, npu.array.acc_bits, npu.array.accumulators, latency=0)
    ports = {"write": ends, "write_row": slots["slot"], "write_data": offset}
    b.instance(store, "offsets", **ports, read_row=slots["drain_slot"], read_data=kept)
    return kept
