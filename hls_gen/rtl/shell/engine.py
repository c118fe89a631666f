"""Engine of an NPU: from words to features and raw values (part of hls_gen/rtl/shell/npu.py).

    inlets --> sequencer --beats--> convolver --results--> results unit --(addition)--(signs)--> features
                  ^---------------- room for another window -----'  `--> raw values

The array never stalls: a window's last beat is issued only where the results unit has a place for what comes of it.
"""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.array.convolver import convolver
from bitloom.hls_gen.rtl.primitives.block import Signal
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.results.addition import addition
from bitloom.hls_gen.rtl.results.results import results
from bitloom.hls_gen.rtl.results.signs import signs
from bitloom.hls_gen.rtl.sequencer.sequencer import SequencerSpec, sequencer

from .context import NpuContext


@dataclass(frozen=True)
class EngineOutputs:
    """Signals of an engine that the rest of its NPU reads."""

    features: Stream
    """OL features a word. Where features may go to the outlets, its side bits are those that `Npu.result_side_bits`
    counts."""
    sequencer: dict[str, Signal]
    """Signals at the ports of the array's sequencer, for counters and register STATE."""
    waits_skipped: Signal | None
    """A step waits for a word of the skip store; None in an NPU without one."""
    kept: Stream | None = None
    """Steps of integers for the skip store of a binary NPU; None in any other."""


def engine(c: NpuContext, words: dict[str, Stream], skipped: Stream | None) -> EngineOutputs:
    """Sequencer, convolver and results unit; where there is a skip store the addition; in a binary NPU with one, signs.

    Parameters
    ----------
    c : NpuContext
        The NPU; it gets port ``weights_there`` if its weights are streamed and stream ``raw`` if it has outlet "host".
    words : dict of str to Stream
        Words that may be read, by inlet.
    skipped : Stream or None
        Words of the skip store for the addition, in an NPU that has one.

    Returns
    -------
    EngineOutputs
        The features; the raw values leave by stream ``raw``.
    """
    b = c.b
    npu = c.npu
    b.comment("Engine: from words to features and raw values.")
    # with several accumulators in a PE, the results unit says which of them it reads
    drain_slot = b.wire("drain_slot", npu.array.slot_bits) if npu.array.accumulators > 1 else None
    room = b.wire("array_room")  # the results unit can take the results of another window
    beats = c.place(
        c.library.get(sequencer, c.library, SequencerSpec(npu.array_sequencer)),
        "array_sequencer",
        last_layer=c.settings["last_layer"],
        room=room,
        **({"weights_there": b.input("weights_there")} if npu.loader.stream_weights else {}),
        **{port: signal for name, stream in words.items() for port, signal in stream.ports(name).items()},
    )
    array = _array(c, beats, drain_slot)
    unit = c.library.get(results, c.library, npu)
    raw = Stream.output_of(b, "raw", unit)
    out = c.place(
        unit,
        "results_unit",
        last_layer=c.settings["last_layer"],
        taken=beats["takes_room"],
        **({} if drain_slot is None else {"drain_slot": drain_slot}),
        result_valid=array["result_valid"],
        results=array["results"],
        **({"result_offset": array["result_offset"]} if npu.array.offset_bits else {}),
        **({} if raw is None else raw.ports("raw")),
    )
    room.assign(out["room"])
    features = Stream.of(out, "features")
    if skipped is None:
        return EngineOutputs(features, beats, None)
    added = c.place(
        c.library.get(addition, c.library, npu), "addition", **features.ports("in"), **skipped.ports("skip")
    )
    features = Stream.of(added, "features")
    if not npu.keeps_steps:
        return EngineOutputs(features, beats, added["waits"])
    both = c.place(c.library.get(signs, c.library, npu), "signs", **features.ports("in"))
    return EngineOutputs(Stream.of(both, "out"), beats, added["waits"], Stream.of(both, "skip"))


def _array(c: NpuContext, beats: dict[str, Signal], drain_slot: Signal | None) -> dict[str, Signal]:
    """The convolver, driven by the sequencer; what is connected to its ports."""
    array = c.library.get(convolver, c.library, c.npu)
    ports = {**beats, "features": beats.get("word"), "drain_slot": drain_slot}
    return c.place(array, "convolver", **{name: ports[name] for name in array.port_widths if name in ports})
