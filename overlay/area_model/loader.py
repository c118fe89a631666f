"""Area of the loader and of the shell: registers, the top module, and what stands between the streams and the NPUs."""

from collections.abc import Iterator

from bitloom.hls_gen.design import gearbox, timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.memories.memory_map import memory_rows
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import COUNTER_BITS, counter_names, state_bits
from bitloom.hls_gen.design.widths import LAST_PIECE_BITS, bits_for
from bitloom.overlay.area.netlist import sized_name

from .area_block import AreaBlock, Features, collector, fifo
from .store import Store


def sizes_of_npu(npu: Npu) -> dict[str, Features]:
    """Sizes that an NPU adds to those of the loader, of the registers and of the top module, by the kind of block."""
    rows = memory_rows(npu)
    return {
        "loader": {"npus": 1, "memories": len(rows), "network": rows["network"].width},
        "registers": {"npus": 1, "pulses": len(npu.pulses), "state": state_bits(npu)},
        "top": {"npus": 1},
    }


def loader_blocks(design: Design) -> Iterator[AreaBlock]:
    """Loader, registers and top module of a design, with what stands between the streams and the NPUs."""
    stream = design.stream_bits
    first = design.npus[0]
    rows = max(bits_for(rows.depth - 1) for npu in design.npus for rows in memory_rows(npu).values())
    others = {"loader": {"rows": rows, "stream": stream}, "registers": {}, "top": {"stream": stream}}
    modules = {"loader": "loader", "registers": "registers_block", "top": TOP}
    added = [sizes_of_npu(npu) for npu in design.npus]
    for kind, module in modules.items():
        by_npus = {name: sum(sizes[kind][name] for sizes in added) for name in added[0][kind]}
        yield AreaBlock(kind, module, {"one": 1, **by_npus, **others[kind]})
    word = first.host_word_bits
    pieces, together = gearbox.gear(word, stream)  # how the host put words into stream words is undone
    if word > stream:
        yield collector(stream, together, word, 0)
    else:
        sizes = {"IN_WIDTH": stream, "OUT_WIDTH": word, "LAST_PIECE": pieces - 1, "LAST_PIECE_WIDTH": LAST_PIECE_BITS}
        name = sized_name("frame_divider", sizes)
        if pieces == 1:  # a register, which is estimated as a divider, too
            name = sized_name("stream_register", {"WIDTH": stream, "SIDE_WIDTH": 1})
        yield AreaBlock("divider", name, {"one": 1, "width": stream, "pieces": bits_for(pieces)})
    yield fifo(1, timing.FRAMES_IN_FLIGHT)
    if design.spill_words:
        yield fifo(first.array.map_bits + 1, design.spill_words)
    yield collector(stream, 1, stream, 1)


def loader_stores(design: Design) -> Iterator[Store]:
    """Flags of the frames in flight, counters, and the spill store."""
    yield Store("frame_flags", 1, timing.FRAMES_IN_FLIGHT, 0)
    yield Store("counts", COUNTER_BITS, timing.counter_rows(len(counter_names(design))), 0)
    if design.spill_words:
        yield Store.of_fifo("spill_store", design.npus[0].array.map_bits + 1, design.spill_words)
