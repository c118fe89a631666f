"""Area blocks: equal instances of a module, with the sizes by which their area goes; and the area blocks that stand
everywhere: gearboxes, FIFOs and skid registers."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bitloom.hls_gen.design import gearbox, timing
from bitloom.hls_gen.design.widths import bits_for
from bitloom.overlay.area.netlist import sized_name

Features = Mapping[str, float]
"""Sizes of an area block by name."""


class AreaBlock(NamedTuple):
    """Equal instances of a module of a design."""

    kind: str
    """Name of the formula by which its area goes."""
    module: str
    """Beginning of its module's name in the Verilog; whole, with the values of parameters, where it has any."""
    features: Features
    """Its sizes."""
    npu: int | None = None
    """Number of the NPU that it belongs to; None: to none."""
    times: int = 1
    """Instances."""
    inside: bool = False
    """Whether the figures are those of the block with the blocks in it."""
    modules: tuple[str, ...] = ()
    """Modules in it whose own figures are counted with its own; their names begin so."""
    dsp: int = 0
    """DSP blocks of an instance, which go by rule: `dsps`."""
    lut: float = 0
    ff: float = 0
    """lut, ff: LUTs and flip-flops of an instance that go by rule, on top of what its formula gives."""


def sequencer_modules(unit: str) -> tuple[str, ...]:
    """The modules that a sequencer consists of."""
    return tuple(f"{unit}_{name}" for name in ("writer", "tap_source", "issuer"))


def gear(source: int, target: int, side: int, n: int, last_piece_bits: int = 0) -> Iterator[AreaBlock]:
    """The gearbox from words of ``source`` bits to words of ``target`` bits; ``side`` bits go with each word, and
    ``last_piece_bits`` say with which piece a tuple's last one ends."""
    together, pieces = gearbox.gear(source, target)
    if source <= target:
        yield collector(source, together, target, side, n)
    else:
        sizes = {"IN_WIDTH": source, "OUT_WIDTH": target, "LAST_PIECE": pieces - 1, "SIDE_WIDTH": max(side, 1)}
        if last_piece_bits:
            sizes["LAST_PIECE_WIDTH"] = last_piece_bits
        name = sized_name("tuple_divider" if last_piece_bits else "divider", sizes)
        yield AreaBlock("divider", name, {"one": 1, "width": source, "pieces": bits_for(pieces - 1)}, n)


def collector(width: int, count: int, target: int, side: int, n: int | None = None) -> AreaBlock:
    """A gearbox that puts ``count`` words together."""
    module = f"collector_of_{count}" if count > 1 else "stream_register"
    return AreaBlock(
        "collector",
        sized_name(module, {"WIDTH": width, "SIDE_WIDTH": max(side, 1)}),
        {
            "one": 1,
            "count": count if count > 1 else 0,
            "width": min(width * count, target),
            "place": bits_for(count - 1),
        },
        n,
    )


def skid(width: int, side: int, n: int) -> AreaBlock:
    """A skid register, by rule: a register and a choice for each bit, and whether a word waits."""
    name = sized_name("skid", {"WIDTH": width, "SIDE_WIDTH": max(side, 1)})
    word = width + side
    return AreaBlock("skid", name, {}, n, lut=word + 3, ff=word + 2)


def fifo(width: int, depth: int, n: int | None = None, margin: int = timing.FIFO_MARGIN) -> AreaBlock:
    """A FIFO of ``depth`` words, which has places for ``margin`` more words as long as its port ``room`` is 1."""
    small = depth <= timing.LUT_RAM_WORDS
    sizes = {"WIDTH": width, "DEPTH": depth, "ROOM_BELOW": timing.room_words(depth, margin)}
    features = {"one": 1, "address": bits_for(depth - 1), "word": width * small, "block": not small}
    return AreaBlock("fifo", sized_name("lut_fifo" if small else "block_fifo", sizes), features, n)
