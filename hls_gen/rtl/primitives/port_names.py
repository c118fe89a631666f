"""Meanings of ports that have the same name, and the same meaning, in several modules.

A module says what its own ports mean where it makes them; what is here are the names that modules share: the parts of
streams, the AXI4-Lite slave, and what the loader, the NPUs and the registers tell each other. A wire between two of
them is called like the ports at both of its ends.
"""

import re

STREAM = {
    "valid": "a word of stream {} is there",
    "ready": "the word of stream {} is taken at this clock edge, if it is there",
    "data": "the word of stream {}",
    "last": "this word of stream {} is the last one of its packet, transfer, map or tuple",
    "side": "bits that go with the word of stream {}",
}
"""Parts of a ready/valid stream, by the end of the port's name; ``{}`` is the stream's name."""

AXI = {
    "awaddr": "byte address of a write",
    "awvalid": "there is a write address",
    "awready": "the write address is taken",
    "wdata": "what is written",
    "wstrb": "bytes that are written: all four, or the write is refused",
    "wvalid": "there is write data",
    "wready": "the write data is taken",
    "bresp": "0: written; 2 (SLVERR): refused",
    "bvalid": "there is an answer to a write",
    "bready": "the answer to the write is taken",
    "araddr": "byte address of a read",
    "arvalid": "there is a read address",
    "arready": "the read address is taken",
    "rdata": "what was read",
    "rresp": "0: read; 2 (SLVERR): the address is not that of a register's first byte",
    "rvalid": "there is an answer to a read",
    "rready": "the answer to the read is taken",
}
"""Ports of an AXI4-Lite slave, by the end of the port's name."""

SHARED = {
    "clk": "clock, rising edge",
    "rst": "synchronous reset, active high",
    # loader, registers, top
    "start": "frames may enter",
    "soft_reset": "reset of all but the registers, for a cycle",
    "irq": "interrupt: a pending one is enabled",
    "restart": "the NPUs are in reset: no network runs, or memories are loaded",
    "error": "a packet was malformed; everything is dropped until reset",
    "error_code": "which rule that packet broke",
    "error_header": "word 0 of the header at hand, after an error of that packet",
    "error_address": "word 1 of that header",
    "error_length": "word 2 of that header",
    "idle": "no frame is in flight, and no packet has begun",
    "computing": "a frame is in flight",
    "loaded": "a network is loaded",
    "loader_state": "state of the loader, by its number",
    "word_taken": "pulse: a stream word was taken",
    "load_begins": "pulse: a LOAD packet begins",
    "signature": "signature of the parameters that were loaded since the last reset",
    "word_given": "pulse: a stream word was given",
    "frame_left": "pulse: the results of a frame have left",
    "result_left": "pulse: a word with tlast has left",
    "load_bank": "load bus: which stream word of the row",
    "load_row": "load bus: number of the row",
    "load_data": "load bus: contents of the bank",
    "last_layer": "number of this NPU's last layer",
    "last_pool_layer": "number of the last row of pool_layers: layers that pass the pool unit, pooled or not",
    "last_row": "number of the last row of thresholds, one row a word of a tuple",
    "last_chunk": "number of the last row of memory chunks in use",
    "state": "where the NPU stands, for register STATE",
    # sequencer, to registers
    "beat": "there is a beat: a word that is used in this cycle",
    "wait_input": "no beat, since its word has not arrived",
    "wait_room": "no beat, since there is no room for its results",
    "wait_table": "no beat, since there is no tap",
    "wait_weights": "no beat, since the weights of its layer have not arrived",
    "wait_memory": "no beat, since the one memory is read for its word",
    "weights_there": "the weights of the next layer to begin are in memory",
    "weights_begun": "pulse: a layer with streamed weights begins",
    "weights_done": "pulse: a layer with streamed weights is done",
}
"""Other ports, by name."""

_NPU = re.compile(r"npu(\d+)_(\w+)")


def meaning_of(port: str) -> str:
    """The meaning of a port of this name, which is the same in every module.

    Parameters
    ----------
    port : str
        Name of the port, such as ``in_valid``, ``s_axis_tdata`` or ``npu0_beat``.

    Returns
    -------
    str
        The meaning, "" where the name has none of its own.
    """
    if port in SHARED:
        return SHARED[port]
    npu = _NPU.fullmatch(port)
    if npu:
        inner = meaning_of(npu[2])
        return f"NPU {npu[1]}: {inner}" if inner else ""
    if port.startswith("load_to_"):
        return f"load bus: load_data is to be written to memory {port.removeprefix('load_to_')} in this cycle"
    if port.startswith("former_"):
        return "window former: a field of the network's row (hls_gen/design/memories/window_former.py)"
    if port.startswith("s_axi_"):
        return AXI.get(port.removeprefix("s_axi_"), "")
    stream, _, end = port.rpartition("_")
    text = STREAM.get(end.removeprefix("t") if stream.endswith("axis") else end, "")
    return text.format(stream) if stream else ""
