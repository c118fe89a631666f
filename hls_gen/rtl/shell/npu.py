"""NPU: one subsystem of the specification (spec B, blocks), which computes its layers of a network one by one.

    host -(binariser)-+
    ring --ping-pong--+-> sequencer -> convolver -> results -> gearbox -> pool -> gearbox -+-> ring
    loop --map store--+                                `-> raw values to host              +-> loop
      ^------------------------------------------------------------------------------------+-> map words to host

The layers are data: every stage keeps its own place in its table of layers. ``rst`` is also the engine's restart.
Without a pool unit what leaves the results goes straight to the last gearbox.

Between NPUs of different engines ring words are bits (hls_gen/compiler/lowered_layers.py): of an integer NPU the signs
of its features, in front of the gearbox; to an integer NPU +1 or -1, behind the ping-pong pair.

Parts: hls_gen/rtl/shell/inlets.py, engine.py, pooling.py, outlets.py.
"""

from bitloom.hls_gen.design.folding import SOURCES
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import state_bits, state_fields
from bitloom.hls_gen.design.widths import LAYER_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, const
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect
from bitloom.hls_gen.rtl.primitives.text import Header

from .context import NpuContext, RingWords
from .engine import EngineOutputs, engine
from .inlets import inlets
from .outlets import outlets
from .pooling import pooling
from .register_word import word_of
from .skip_store import SkipStore, skip_store

WITH_SKIP_STORE = """
With a skip store:

    results --> addition --> gearbox ... gearbox --> outlets
                   ^------------- skip store <----------'
                                      `--> sequencer, as one more inlet

Parts: hls_gen/rtl/shell/skip_store.py, map_fork.py.
"""
"""What the header of an NPU with a skip store says besides."""
WITH_STEPS_KEPT = """
With a skip store:

    results --> addition --> signs --> gearbox ...
                   ^----- skip store <---'

Parts: hls_gen/rtl/shell/skip_store.py, hls_gen/rtl/results/signs.py.
"""
"""What the header of a binary NPU with a skip store says besides."""
WITH_STEPS_ONWARD = """
With a skip store, integers going onward:

    results --> addition --> signs --> gearbox ...
                   |           `--> kept: the skip store of the NPU after
                   `-- skip store

Parts: hls_gen/rtl/shell/skip_store.py, hls_gen/rtl/results/signs.py.
"""
"""The same where it keeps integers for the NPU after."""


def npu(library: Library, params: Npu, ring: RingWords) -> Block:
    """One NPU.

    Parameters
    ----------
    library : Library
        Where its modules come from.
    params : Npu
        Parameters of the NPU.
    ring : RingWords
        What its neighbours in the ring give and take.

    Returns
    -------
    Block
        Ports: the load bus and ``run`` (0: everything restarts); the network row's fields ``Npu.settings``; streams
        ``host`` and ``ring`` in, ``to_ring``, ``to_host`` and ``raw`` out, as far as there are such inlets and outlets;
        ``kept_before`` in and ``kept`` out, between NPUs that keep integers; pulses for the counters; ``state``.
    """
    sizes = ("engine", "kfp", "kgp", "pfp", "ol", "acc_bits", "accumulators", "planes")
    header = Header(
        (__doc__ or "") + _with_store(params),
        rate="one beat of kfp x kgp products a cycle",
        latency="that of the layers, which are data",
        parameters={size: getattr(params, size) for size in sizes},
    )
    b = Block(_name(library, params, ring), header)
    bus = LoadBus.ports(b, library.stream_bits, [m for m in params.memories() if m.name != "network"])
    run = b.input("run")
    settings = {name: b.input(name, w) for name, w in params.settings.items()}

    # # #

    c = NpuContext(b, library, params, ring, b.wire("restart", 1, b.rst | ~run), bus, settings)
    loop = Stream.wires(b, "loop_in", params.word_bits) if "loop" in params.inlets else None
    skip = skip_store(c) if params.skip_words else None
    read = {"loop": loop, "skip": None if skip is None else skip.to_inlet}
    words = inlets(c, {name: stream for name, stream in read.items() if stream is not None})
    made = engine(c, words, None if skip is None else skip.to_addition)
    maps, pool_layer = pooling(c, made.features) if params.pool else (made.features, const(0, LAYER_BITS))
    waiting = outlets(c, maps, loop, skip.words if skip is not None and params.forks_maps else None)
    waiting |= _keep(c, made, skip)
    conv = made.ports
    b.comment("What the registers show and count.")
    for name in (*params.pulses, *(("weights_begun", "weights_done") if params.stream_weights else ())):
        b.output(name, 1, conv[name])
    shown: dict[str, Signal] = {
        "CONV_LAYER": conv["layer"],
        "POOL_LAYER": pool_layer,
        "RUN": run,
        "INLET": conv["inlet"],
        **{f"WAITS_{what.upper()}": conv[f"wait_{what}"] for what in ("input", "room")},
        **{f"{name.upper()}_VALID": words[name].valid if name in words else const(0, 1) for name in SOURCES},
        "WAITS_SKIPPED": made.waits_skipped,
        **{f"{name.upper()}_BLOCKED": signal for name, signal in waiting.items()},
    }
    if params.stream_weights:
        shown["WAITS_WEIGHTS"] = conv["wait_weights"]
    b.output("state", state_bits(params), word_of(state_fields(params), shown))
    return b


def _keep(c: NpuContext, made: EngineOutputs, skip: SkipStore | None) -> dict[str, Signal]:
    """Connects the steps that a binary NPU keeps to a skip store, its own or by stream ``kept`` that of the NPU after;
    what comes by stream ``kept_before`` goes to its own. Whether a step waits that is not taken."""
    if made.kept is None or skip is None:
        return {}
    w = c.npu.skip_word_bits
    if c.ring.skipped:
        connect(Stream.input(c.b, "kept_before", w), skip.words)
    if c.npu.skips_onward:
        connect(made.kept, Stream.output(c.b, "kept", w))
    elif c.ring.skipped:
        made.kept.ready.assign(const(1, 1))  # no layer's steps are kept
    else:
        connect(made.kept, skip.words)
    return {"skip": made.kept.valid & ~made.kept.ready}


def _with_store(params: Npu) -> str:
    """What the header of an NPU says of its skip store."""
    if params.skips_onward:
        return WITH_STEPS_ONWARD
    return WITH_SKIP_STORE * params.forks_maps + WITH_STEPS_KEPT * params.keeps_steps


def _name(library: Library, params: Npu, ring: RingWords) -> str:
    """Name of the module, which tells apart NPUs that differ only in their neighbours."""
    name = library.name("npu", params)
    if "ring" in params.outlets and ring.out_bits != params.word_bits:
        name += f"_to_{ring.out_bits}"
    return name + "_from_bits" * ring.from_bits + "_to_bits" * ring.to_bits + "_skipped" * ring.skipped
