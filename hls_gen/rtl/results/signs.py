"""Signs: of steps of integers the signs go on as bits, the integers to the skip store.  Golden twin:
hls_gen/compiler/lowered_layers.py, Sign.

    in[OL integers] --+--> out[OL]: 1 where the integer is at least 0
                      `--> skip[OL integers], of layers whose results are kept

Each side gets its step when it is ready, whatever the other one does, and has a register that says whether it has taken
the step already (hls_gen/rtl/primitives/stream.py, fork). A step that isn't kept passes the skip store by.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, any_of, bits, side_by_side
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream, fork
from bitloom.hls_gen.rtl.primitives.text import Header


def signs(library: Library, npu: Npu) -> Block:
    """Fork behind the addition of a binary NPU: signs go on, integers go to the skip store.

    Module ``signs``. Streams ``in`` and ``out`` of steps, at ``in`` with one side bit more, above the others: whether
    the step is kept; stream ``skip`` of words of the skip store.
    """
    sizes = {"ol": npu.results.ol, "value_bits": npu.value_bits}
    latency = "0 cycles from in to out and skip"
    header = Header(__doc__, rate="one step a cycle", latency=latency, parameters=sizes)
    b = Block(library.name("signs", npu), header)
    w = npu.value_bits
    side = npu.result_side_bits
    source = Stream.input(b, "in", npu.results.ol * w, last=True, side_bits=side + 1)
    out = Stream.output(b, "out", npu.results.ol, last=True, side_bits=side)
    skip = Stream.output(b, "skip", npu.results.ol * w)

    # # #

    keeps = b.wire("keeps", 1, bits(source.side, side, 1))
    kept = b.wire("for_skip")
    served = b.wire("served_skip", 1, any_of(skip.ready, ~keeps))
    skip.valid.assign(kept & keeps)
    goes_on = Stream(b.wire("for_out"), out.ready, b.wire("out_data_unused", npu.results.ol * w))
    fork(b, "sides", source, [goes_on, Stream(kept, served, skip.data)])
    out.valid.assign(goes_on.valid)
    out.data.assign(
        side_by_side([b.wire(f"sign_{k}", 1, ~bits(source.data, k * w + w - 1, 1)) for k in range(npu.results.ol)])
    )
    out.last.assign(source.last)
    if out.side is not None:
        out.side.assign(bits(source.side, 0, side))
    return b
