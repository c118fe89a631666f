"""Judge: whether this design can take the packet whose header is at hand (docs/reference/device.md, "Packets").

    header --> sums and comparisons, a register each (state RANGE) --> verdict: 0, or an error code (state JUDGE)

Two cycles, since the sum of two 32-bit words, its comparison and the choice of the code are too deep for one.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.headers import ERROR_BITS
from bitloom.hls_gen.design.widths import LAYER_BITS, ROW_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    choose,
    const,
    eq,
    nonzero,
    resize,
    width,
)

from .header import HeaderWords, kind_number
from .load import AddressedMemory
from .network_row import NetworkRow
from .order import Order
from .state import LoaderContext


def error_code(b: Block, name: str) -> Signal:
    """The code of an error, as a constant ``ERROR_<name>`` of the module."""
    return b.localparam(f"ERROR_{name}", getattr(headers, name), ERROR_BITS)


@dataclass(frozen=True)
class Judgement:
    """What was found of the header, a cycle after it is complete."""

    is_load: Signal
    """Register: the packet is a LOAD."""
    is_frame: Signal
    """Register: it is a FRAME."""
    verdict: Signal
    """Code of the first rule that it breaks, 0 if none."""
    passed: Signal
    """It breaks none."""


@dataclass(frozen=True)
class Known:
    """What a header is held to."""

    target: AddressedMemory
    """The memory that it names."""
    network: NetworkRow
    """Network row of NPU 0, which gets the frames."""
    loaded: Signal
    """Every NPU has a network row."""
    order: Order
    """What came before."""


def judge(c: LoaderContext, header: HeaderWords, known: Known) -> Judgement:
    """Hold the header to the rules.

    Parameters
    ----------
    c : LoaderContext
        The loader.
    header : HeaderWords
        The header, which stands still in states RANGE and JUDGE.
    known : Known
        What it is held to.
    """
    b = c.b
    target = known.target
    b.comment("Judge: sums and comparisons (state RANGE), then the verdict (state JUDGE).")
    magic = b.localparam("MAGIC", headers.MAGIC, headers.word_0("MAGIC").width, base=16)
    codes = {error.name: error_code(b, error.name) for error in headers.ERRORS}
    end_ok = b.reg("end_ok", init=None)
    whole = b.reg("header_ok", init=None)
    frame_ok = b.reg("frame_ok", init=None)
    order_ok = b.reg("order_ok", init=None)
    program_ok = b.reg("program_ok", init=None)
    end_bits = ROW_BITS + 1  # so that it can't wrap
    end = b.wire("end_row", end_bits, resize(header.address, end_bits) + resize(header.length, end_bits))
    parity = header.words[0] ^ header.words[1] ^ header.words[2]
    plain = ~nonzero(b.wire("beside_rows", LAYER_BITS, header.fields["LAYER"] | header.fields["NUMBER"]))
    if target.is_weights is not None:
        plain = plain | target.is_weights
    b.on(
        None,
        (end_ok, all_of(nonzero(header.length), end <= resize(target.depth, end_bits), plain)),
        (whole, eq(header.fields["MAGIC"], magic) & eq(header.fields["CHECK"], ~parity)),
        (frame_ok, eq(header.length, known.network.fields["frame_words"])),
        (order_ok, known.order.in_turn(b, header, known.network, target.is_weights)),
        (program_ok, eq(header.words[1], known.order.signature)),
    )
    is_load = b.reg("is_load", init=None)
    is_frame = b.reg("is_frame", init=None)
    other_npu = b.reg("other_npu", init=None)
    no_memory = b.reg("no_memory", init=None)
    b.on(
        None,
        (is_load, eq(header.kind, kind_number(b, "LOAD", headers.LOAD))),
        (is_frame, eq(header.kind, kind_number(b, "FRAME", headers.FRAME))),
        (other_npu, header.npu > b.localparam("LAST_NPU", len(c.design.npus) - 1, width(header.npu))),
        (no_memory, eq(target.depth, 0)),
    )
    weights = [] if target.is_weights is None else [target.is_weights]
    rules = [  # the first broken rule is reported: a later one may mean nothing where an earlier one is broken
        (~whole, "BAD_HEADER"),
        (~any_of(is_load, is_frame, *weights), "BAD_KIND"),
        (other_npu, "BAD_NPU"),
        (is_load & no_memory, "BAD_MEMORY"),
        (any_of(is_load, *weights) & ~end_ok, "BAD_RANGE"),
        (any_of(is_frame, *weights) & ~known.loaded, "NOT_LOADED"),
        (is_frame & ~program_ok, "BAD_PROGRAM"),
        (is_frame & ~frame_ok, "BAD_FRAME"),
        (any_of(is_frame, *weights) & ~order_ok, "BAD_ORDER"),
    ]
    verdict: Signal = const(0, ERROR_BITS)
    for broken, name in reversed(rules):
        verdict = choose(broken, codes[name], verdict, ERROR_BITS)
    verdict = b.wire("verdict", ERROR_BITS, verdict)
    return Judgement(is_load, is_frame, verdict, b.wire("passed", 1, eq(verdict, 0)))
