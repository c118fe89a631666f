"""Judge: whether this design can take the packet whose header is at hand (docs/reference/device.md, "Packets").

    header --> for each rule a register: is it broken (state RANGE) --> verdict: 0, or an error code (state JUDGE)

Two cycles, since a sum, its comparison and the choice of the code are too deep for one.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.headers import ERROR_BITS
from bitloom.hls_gen.design.widths import LAYER_BITS, ROW_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
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

DEEP = ("header_check", "range_end", "program", "frame", "order")
"""Rules for which many bits are compared."""


def error_code(b: Block, name: str) -> Signal:
    """The code of an error, as a constant ``ERROR_<name>`` of the module."""
    return b.localparam(f"ERROR_{name}", getattr(headers, name), ERROR_BITS)


@dataclass(frozen=True)
class Judgement:
    """The loader's verdict on a header, a cycle after the header is complete."""

    is_load: Signal
    """Register: the packet is a LOAD."""
    is_frame: Signal
    """Register: it is a FRAME."""
    verdict: Signal
    """Code of the first rule that it breaks, 0 if none."""
    passed: Signal
    """It breaks none. This doesn't wait for the code, which is chosen by the first of them."""


@dataclass(frozen=True)
class HeaderFacts:
    """Facts of the loader with which the fields of a header are compared."""

    target: AddressedMemory
    """The memory that it names."""
    network: NetworkRow
    """Network row of NPU 0, which gets the frames."""
    loaded: Signal
    """Every NPU has a network row."""
    order: Order
    """Count of the packets that came before."""


def judge(c: LoaderContext, header: HeaderWords, known: HeaderFacts) -> Judgement:
    """Hold the header to the rules.

    Parameters
    ----------
    c : LoaderContext
        The loader.
    header : HeaderWords
        The header, which stands still in states RANGE and JUDGE.
    known : HeaderFacts
        Facts with which the header is compared.
    """
    b = c.b
    target = known.target
    b.comment("Judge: sums and comparisons (state RANGE), then the verdict (state JUDGE).")
    codes = {error.name: error_code(b, error.name) for error in headers.ERRORS}
    is_load = b.reg("is_load", init=None)  # known in state RANGE, as word 0 came before the header's last words
    is_frame = b.reg("is_frame", init=None)
    b.on(
        None,
        (is_load, eq(header.kind, kind_number(b, "LOAD", headers.LOAD))),
        (is_frame, eq(header.kind, kind_number(b, "FRAME", headers.FRAME))),
    )
    weights = [] if target.is_weights is None else [target.is_weights]
    rows = any_of(is_load, *weights)
    in_order = any_of(is_frame, *weights)
    known_order = known.order.in_turn(b, header, known.network, target.is_weights)
    broken = [  # the first broken rule is reported: a later one may mean nothing where an earlier one is broken
        *[(f"header_{part}", ~right, "BAD_HEADER") for part, right in _header_right(b, header)],
        ("kind", ~any_of(is_load, is_frame, *weights), "BAD_KIND"),
        ("npu", header.npu > b.localparam("LAST_NPU", len(c.design.npus) - 1, width(header.npu)), "BAD_NPU"),
        ("memory", is_load & eq(target.depth, 0), "BAD_MEMORY"),
        *[(f"range_{part}", rows & beyond, "BAD_RANGE") for part, beyond in _beyond(b, header, target)],
        ("loaded", in_order & ~known.loaded, "NOT_LOADED"),
        ("program", is_frame & ~eq(header.words[1], known.order.signature), "BAD_PROGRAM"),
        ("frame", is_frame & ~eq(header.length, known.network.fields["frame_words"]), "BAD_FRAME"),
        ("order", in_order & ~known_order, "BAD_ORDER"),
    ]
    verdict: Signal = const(0, ERROR_BITS)
    deep = []
    for what, is_broken, name in reversed(broken):
        register = b.reg(f"breaks_{what}", init=None)
        b.on(None, (register, is_broken))
        verdict = choose(register, codes[name], verdict, ERROR_BITS)
        deep += [register] * (what in DEEP)
    verdict = b.wire("verdict", ERROR_BITS, verdict)
    # a register for all that are quickly found, so that few are looked at
    shallow = b.reg("breaks_another", init=None)
    b.on(None, (shallow, any_of(*[is_broken for what, is_broken, _ in broken if what not in DEEP])))
    passed = b.wire("passed", 1, ~any_of(shallow, *deep))
    return Judgement(is_load, is_frame, verdict, passed)


def _header_right(b: Block, header: HeaderWords) -> list[tuple[str, Signal]]:
    """The rules that a header keeps by itself, with a signal each: its first word, and its check word."""
    magic = b.localparam("MAGIC", headers.MAGIC, headers.word_0("MAGIC").width, base=16)
    parity = header.words[0] ^ header.words[1] ^ header.words[2]
    return [("magic", eq(header.fields["MAGIC"], magic)), ("check", eq(header.fields["CHECK"], ~parity))]


def _beyond(b: Block, header: HeaderWords, target: AddressedMemory) -> list[tuple[str, Signal]]:
    """Why the memory hasn't the rows that the header names: their end, numbers that are no row's at all, and none. A
    short sum is enough for the end, since no memory has more rows than the bits of ``target.depth`` say."""
    w = width(target.depth)
    beside = b.wire("beside_rows", LAYER_BITS, header.fields["LAYER"] | header.fields["NUMBER"])
    marked = nonzero(beside) if target.is_weights is None else nonzero(beside) & ~target.is_weights
    beyond = header.end_row > resize(target.depth, width(header.end_row))
    parts = [("end", beyond), ("none", eq(header.length, 0) | marked)]
    if w < ROW_BITS:
        high = [bits(word, w, ROW_BITS - w) for word in (header.address, header.length)]
        parts.append(("high", nonzero(b.wire("no_row", ROW_BITS - w, high[0] | high[1]))))
    return parts
