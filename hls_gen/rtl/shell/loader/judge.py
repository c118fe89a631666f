"""Judge: whether this design can take the packet whose header is at hand (docs/reference/device.md, "Packets").

    header --> sums and comparisons, a register each (state RANGE) --> verdict: 0, or an error code (state JUDGE)

Two cycles, since the sum of two 32-bit words, its comparison and the choice of the code are too deep for one.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.headers import ERROR_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, choose, const, eq, nonzero, resize

from .header import HeaderWords, kind_number
from .load import AddressedMemory
from .network_row import NetworkRow
from .state import LoaderContext


def error_code(b: Block, name: str) -> Signal:
    """The code of an error, as a constant ``ERROR_<name>`` of the module."""
    return b.localparam(f"ERROR_{name}", getattr(headers, name), ERROR_BITS)


@dataclass(frozen=True)
class Judgement:
    """What was found of the header, a cycle after it is complete.

    Attributes
    ----------
    is_load : Signal
        Register: the packet is a LOAD.
    is_frame : Signal
        Register: it is a FRAME.
    verdict : Signal
        Code of the first rule that it breaks, 0 if none.
    passed : Signal
        It breaks none.
    """

    is_load: Signal
    is_frame: Signal
    verdict: Signal
    passed: Signal


def judge(
    c: LoaderContext, header: HeaderWords, target: AddressedMemory, network: NetworkRow, loaded: Signal
) -> Judgement:
    """Hold the header to the rules.

    Parameters
    ----------
    c : LoaderContext
        The loader.
    header : HeaderWords
        The header, which stands still in states RANGE and JUDGE.
    target : AddressedMemory
        The memory that it names.
    network : NetworkRow
        Network row of NPU 0, which gets the frames.
    loaded : Signal
        Every NPU has a network row.
    """
    b = c.b
    b.comment("Judge: sums and comparisons (state RANGE), then the verdict (state JUDGE).")
    magic = b.localparam("MAGIC", headers.MAGIC, headers.word_0("MAGIC").width, base=16)
    codes = {error.name: error_code(b, error.name) for error in headers.ERRORS}
    end_ok, whole = b.reg("end_ok", init=None), b.reg("header_ok", init=None)
    frame_ok = b.reg("frame_ok", init=None)
    end = b.wire("end_row", 33, resize(header.address, 33) + resize(header.length, 33))  # 33 bits: it can't wrap
    parity = header.words[0] ^ header.words[1] ^ header.words[2]
    b.on(
        None,
        (end_ok, all_of(nonzero(header.length), end <= resize(target.depth, 33))),
        (whole, eq(header.fields["MAGIC"], magic) & eq(header.fields["CHECK"], ~parity)),
        (frame_ok, eq(header.length, network.fields["frame_words"])),
    )
    is_load, is_frame = b.reg("is_load", init=None), b.reg("is_frame", init=None)
    other_npu, no_memory = b.reg("other_npu", init=None), b.reg("no_memory", init=None)
    b.on(
        None,
        (is_load, eq(header.kind, kind_number(b, "LOAD", headers.LOAD))),
        (is_frame, eq(header.kind, kind_number(b, "FRAME", headers.FRAME))),
        (other_npu, header.npu > b.localparam("LAST_NPU", len(c.design.npus) - 1, 8)),
        (no_memory, eq(target.depth, 0)),
    )
    weights = [] if target.is_weights is None else [target.is_weights]
    rules = [  # the first that is broken is told: a later one may mean nothing where an earlier one is broken
        (~whole, "BAD_HEADER"),
        (~any_of(is_load, is_frame, *weights), "BAD_KIND"),
        (other_npu, "BAD_NPU"),
        (is_load & no_memory, "BAD_MEMORY"),
        (any_of(is_load, *weights) & ~end_ok, "BAD_RANGE"),
        (any_of(is_frame, *weights) & ~loaded, "NOT_LOADED"),
        (is_frame & ~frame_ok, "BAD_FRAME"),
    ]
    verdict: Signal = const(0, ERROR_BITS)
    for broken, name in reversed(rules):
        verdict = choose(broken, codes[name], verdict, ERROR_BITS)
    verdict = b.wire("verdict", ERROR_BITS, verdict)
    return Judgement(is_load, is_frame, verdict, b.wire("passed", 1, eq(verdict, 0)))
