"""Area of the window former, by rule: nothing is fitted."""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design.former import FormerSizes
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import LUT_RAM_WORDS

from .area_block import AreaBlock, skid
from .store import Store


def former_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The window former of NPU ``n`` and the skid register in front of it; nothing without a window former."""
    if npu.former_sizes:
        yield AreaBlock("window_former", "window_former", {}, n, **_former(npu, npu.former_sizes))
        yield skid(npu.host_word_bits if "host" in npu.ports.inlets else npu.array.map_bits, 0, n)


def former_stores(npu: Npu) -> Iterator[Store]:
    """The line memory, which keeps the columns of the rows above."""
    sizes = npu.former_sizes
    if sizes and sizes.column > sizes.granule:
        width = (sizes.column - sizes.granule) * npu.former_lane_bits
        yield Store.of_fifo("line_memory", width, sizes.line)


def _former(npu: Npu, sizes: FormerSizes) -> dict[str, Any]:
    """Of seventeen formers by Yosys; LUTs are off by 8 % at most where a position may have three to eight numbers of
    granules, else by 22 %. Since registers are cleared where there were ANDs, seven binary formers have 20 to 46 %
    fewer LUTs than this says."""
    column = sizes.column * npu.former_lane_bits
    registered = sizes.line <= LUT_RAM_WORDS  # a register behind LUT RAM
    kept = (column - npu.former_granule_bits) * registered
    choice = npu.array.word_bits * (npu.former_words - 1)
    lane = (0.4 if npu.array.zero_weights else 1.3) if sizes.channels <= 2 * sizes.granule else 2.2
    numbers = max(sizes.channels // sizes.granule - 4, 0)  # of four numbers one LUT a bit chooses
    lut = 139 + 2.04 * npu.array.word_bits + 0.425 * choice + lane * column
    lut += 0.55 * numbers * (npu.array.word_bits + column)
    copied = sizes.ahead * max(sizes.columns * column - npu.array.word_bits, 0)
    return {"lut": round(lut), "ff": npu.array.word_bits + sizes.columns * column + kept + copied + 38}
