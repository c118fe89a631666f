"""NPU: one subsystem of the specification (spec B, blocks), which computes its layers of a network one by one.

    host -(binariser)-+
    ring --ping-pong--+-> sequencer -> array -> results -(addition)-> pool unit -> gearbox -+-> ring
    loop --map store--+                            `-> raw values to host                   +-> loop
      ^-------------------------------------------------------------------------------------+-> map words to host

The layers are data: every unit keeps its own place in its table of layers. Memories are loaded
during reset, ``restart`` of the loader. Without a pool unit what leaves the results goes straight to the gearbox. Maps
that wait for an addition or for a second reader wait in the skip store.

Between NPUs of different engines ring words are bits (hls_gen/compiler/lowered_layers.py): of an integer NPU the signs
of its features, in front of the gearbox; to an integer NPU +1 or -1, behind the ping-pong pair.

Parts: hls_gen/rtl/shell/inlets.py, engine.py, pool_unit.py, stores.py, outlets.py.
"""

from bitloom.hls_gen.design.memories.loader import settings
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.ports import SOURCES
from bitloom.hls_gen.design.registers import state_bits, state_fields
from bitloom.hls_gen.design.widths import LAYER_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, const
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.register_word import word_of
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect
from bitloom.hls_gen.rtl.primitives.text import Header

from .context import NpuContext, RingWords
from .engine import EngineOutputs, engine
from .inlets import inlets
from .outlets import outlets
from .pool_unit import pooling
from .stores import SkipStreams, skip_store

INLETS = {
    "host": "words of frames",
    "ring": "words of the NPU before, by two buffers that take turns",
    "loop": "words of this NPU's own maps, by the map store",
    "skip": "words of maps that waited in the skip store",
}
"""Words that come by each inlet."""
OUTLETS = {
    "ring": "words of maps to the NPU after",
    "loop": "words of maps to the map store",
    "host": "words of the last map, or raw values of the last layer, to the output",
    "skip": "words of maps to the skip store",
}
"""Words that go by each outlet."""
FORMER = "; windows of them, by the window former"
"""Addition to the meaning of the inlet behind which an NPU has a window former."""
BINARISER = "words of frames, by the binariser"
"""Words that come by inlet host where an NPU has a binariser."""
BITS_IN = "words of the NPU before, whose bits become +1 and -1 behind two buffers that take turns"
BITS_OUT = "signs of the features, to the NPU after"
"""BITS_IN, BITS_OUT: words that come and go by the ring between NPUs of different engines."""
STEPS = "The skip store has integers of which the signs went on; they wait for the addition"
"""Use of the skip store of a binary NPU."""


def npu(library: Library, params: Npu, ring: RingWords) -> Block:
    """One NPU.

    Parameters
    ----------
    params : Npu
        Parameters of the NPU.
    ring : RingWords
        Words that it exchanges with its neighbours in the ring.

    Returns
    -------
    Block
        Ports: the load bus, which writes also during reset; the network row's fields that the NPU looks at;
        streams ``host`` and ``ring`` in, ``to_ring``, ``to_host`` and ``raw`` out, as far as there are such inlets and
        outlets; ``kept_before`` in and ``kept`` out, between NPUs that keep integers; pulses for the counters;
        ``state``.
    """
    sizes = ("engine", "kfp", "kgp", "pfp", "ol", "acc_bits", "accumulators", "planes")
    header = Header(
        _contract(params, ring),
        rate="one beat of kfp x kgp products a cycle",
        latency="that of the layers, which are data",
        parameters=params.values(*sizes),
    )
    b = Block(_name(library, params, ring), header)
    bus = LoadBus.ports(b, library.stream_bits, [m for m in memory_map(params) if m.name != "network"])
    values = {name: b.input(name, w) for name, w in settings(params)}

    # # #

    c = NpuContext(b, library, params, ring, bus, values)
    loop = Stream.wires(b, "loop_in", params.array.map_bits) if "loop" in params.ports.inlets else None
    skip = skip_store(c) if params.has_skip else None
    read = {"loop": loop, "skip": None if skip is None else skip.to_inlet}
    words = inlets(c, {name: stream for name, stream in read.items() if stream is not None})
    outputs = engine(c, words, None if skip is None else skip.to_addition)
    features = outputs.features
    maps, pool_layer = pooling(c, features) if params.pool_unit else (features, const(0, LAYER_BITS))
    waiting = outlets(c, maps, loop, skip.words if skip is not None and params.forks_maps else None)
    waiting |= _keep(c, outputs, skip)
    b.comment("What the registers show and count.")
    for name in (*params.pulses, *(("weights_begun", "weights_done") if params.loader.stream_weights else ())):
        b.output(name, 1, outputs.sequencer[name])
    shown: dict[str, Signal] = {
        "ARRAY_LAYER": outputs.sequencer["layer"],
        "POOL_LAYER": pool_layer,
        "RUN": ~b.rst,
        "INLET": outputs.sequencer["inlet"],
        **{f"WAITS_{what.upper()}": outputs.sequencer[f"wait_{what}"] for what in ("input", "room")},
        **{f"{name.upper()}_VALID": words[name].valid if name in words else const(0, 1) for name in SOURCES},
        "WAITS_SKIPPED": outputs.waits_skipped,
        **{f"{name.upper()}_BLOCKED": signal for name, signal in waiting.items()},
    }
    if params.loader.stream_weights:
        shown["WAITS_WEIGHTS"] = outputs.sequencer["wait_weights"]
    b.output("state", state_bits(params), word_of(state_fields(params), shown))
    return b


def _keep(c: NpuContext, outputs: EngineOutputs, skip: SkipStreams | None) -> dict[str, Signal]:
    """Connects the steps that a binary NPU keeps to a skip store: its own, or by stream ``kept`` the store of the NPU
    after. Steps by stream ``kept_before`` go to the NPU's own store.

    Returns "skip" -> whether a kept step waits that is not taken; nothing where no steps are kept.
    """
    if outputs.kept is None or skip is None:
        return {}
    w = c.npu.skip_word_bits
    if c.ring.skipped:
        connect(Stream.input(c.b, "kept_before", w), skip.words)
    elif c.npu.skips_onward:  # the first of a chain: no NPU fills its store
        skip.words.valid.assign(const(0, 1))
        skip.words.data.assign(const(0, w))
    if c.npu.skips_onward:
        connect(outputs.kept, Stream.output(c.b, "kept", w))
    elif c.ring.skipped:
        outputs.kept.ready.assign(const(1, 1))  # no layer's steps are kept
    else:
        connect(outputs.kept, skip.words)
    return {"skip": outputs.kept.valid & ~outputs.kept.ready}


def _contract(params: Npu, ring: RingWords) -> str:
    """Text of an NPU's header: the units, inlets and outlets that the NPU has."""
    rare = {"addition": params.has_skip, "pool unit": params.pool_unit}
    units = ["sequencer", "convolver", "results", *(name for name, has in rare.items() if has)]
    sources = {name: INLETS[name] for name in params.sources}
    targets = {name: OUTLETS[name] for name in params.targets}
    if params.ports.binariser:
        sources["host"] = BINARISER
    if ring.from_bits:
        sources["ring"] = BITS_IN
    if params.former_sizes:
        sources["host" if "host" in sources else "ring"] += FORMER
    if ring.to_bits:
        targets["ring"] = BITS_OUT
    paragraphs = [
        "NPU: computes its layers of a network one by one (spec B, blocks).",
        f"    inlets --> {' --> '.join(units)} --> outlets",
        "The layers are data: every unit keeps its own place in its table of layers. Memories are loaded during reset.",
        "\n".join(["Inlets:", *(f"  {name}  {what}" for name, what in sources.items())]),
        "\n".join(["Outlets:", *(f"  {name}  {what}" for name, what in targets.items())]),
    ]
    if params.keeps_steps:
        paragraphs.append(STEPS + (" of the NPU after." if params.skips_onward else "."))
    return "\n\n".join(paragraphs)


def _name(library: Library, params: Npu, ring: RingWords) -> str:
    """Name of the module, which tells apart NPUs that differ only in their neighbours."""
    name = library.name("npu", params)
    if "ring" in params.ports.outlets and ring.out_bits != params.array.map_bits:
        name += f"_to_{ring.out_bits}"
    return name + "_from_bits" * ring.from_bits + "_to_bits" * ring.to_bits + "_skipped" * ring.skipped
