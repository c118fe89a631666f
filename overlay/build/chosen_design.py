"""The design that a command was asked for: a reference design, or NPUs of a folding, alone or connected to a chain."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.workloads import engines_of
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.design import MOST_NPUS
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring

from .reference_designs import REFERENCE_DESIGNS, ReferenceDesign, default_npu, reference_design
from .small_npu import INTEGER, plane_shift_bits

TOPOLOGIES = {"pipeline": pipeline, "cascade": cascade, "ring": ring}
"""How several NPUs are connected, by name."""
OF_FRAMES = ("planes", "shift_bits", "binariser_bits", "window_former")
"""Fields of a folding that only NPUs that read the host's frames can have."""


OF_ENGINE = {engine: tuple(name for name in flat.CHOSEN if flat.engine_of(name) == engine) for engine in flat.ENGINES}
"""Fields of a folding that only one engine has; in a design of both engines only the NPUs of that engine get them."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A person's wishes for a design; None: as the design has it, or as follows from the network."""

    design: str | None = None
    """Name of a reference design; None takes the one that has the network's name, if nothing is asked of its NPUs."""
    folding: Mapping[str, Any] = field(default_factory=dict)
    """Values of the folding (`bitloom.hls_gen.design.flat.CHOSEN`), for every NPU that can have them. Without
    ``design`` NPUs are otherwise as ``default_npu``: with any value, with a topology, or where no reference design has
    the network's name."""
    npu: int | None = None
    """Number of the NPU that gets the folding; None: each one that can have a value."""
    topology: str | None = None
    """One of TOPOLOGIES; None: one NPU, a pipeline where the network needs both engines, or the NPUs of ``design``,
    which has a topology of its own."""
    npus: int | None = None
    """NPUs of the topology, 1 to MOST_NPUS. A pipeline has one for each weighted layer, which need not be said."""
    stream_bits: int | None = None
    """Replaces that of the design."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `CompileChoices` by name, which replace those of the design."""
    stream_weights: bool = False
    """Whether weights come over the stream."""


def chosen_design(model: Model, wanted: Wanted | None = None) -> ReferenceDesign:
    """The design that was asked for, for a network.

    Parameters
    ----------
    model
        The network.
    wanted
        Values that were asked for; by default none.

    Raises
    ------
    ValueError
        If there is no such design, it is to have another topology, a folding breaks a rule, no NPU can have a value, or
        the topology can't have so many NPUs.
    """
    wanted = wanted or Wanted()
    name = model.network.name
    if wanted.npus is not None and not wanted.topology:
        raise ValueError(f"{name}: several NPUs need a topology, {', '.join(TOPOLOGIES)}, got {wanted.npus} without")
    if wanted.design and wanted.topology:
        raise ValueError(f"{wanted.design}: its NPUs are connected already, got topology {wanted.topology}")
    design = reference_design(wanted.design) if wanted.design else REFERENCE_DESIGNS.get(name)
    if wanted.design or design is None or wanted.folding or wanted.topology or wanted.npu is not None:
        start = design if design and wanted.design else _small_design(model, wanted)
        design = replace(start, npus=folded(wanted.design or name, start.npus, wanted))
    stream_bits = design.stream_bits if wanted.stream_bits is None else wanted.stream_bits
    return replace(design, stream_bits=stream_bits, choices=replace(design.choices, **wanted.choices))


def needs_both_engines(network: Network) -> bool:
    """Whether a network has layers for the binary engine and others for the integer one."""
    return len(set(engines_of(network))) > 1


def _small_design(model: Model, wanted: Wanted) -> ReferenceDesign:
    """The design with one NPU of ``default_npu``, or with several of them connected by the topology. A network that
    needs both engines gets a pipeline, as no NPU has both."""
    npu = default_npu(model)
    network = model.network
    if not wanted.topology and needs_both_engines(network):
        wanted = replace(wanted, topology="pipeline")
    npus = _connected(network, npu, wanted) if wanted.topology else (npu,)
    return ReferenceDesign(network=network.name, npus=npus)


def folded(name: str, npus: tuple[Npu, ...], wanted: Wanted) -> tuple[Npu, ...]:
    """NPUs with the values of a folding that was asked for, each with those that it can have, or one of them with all.

    Parameters
    ----------
    name
        Name of the design or of the network, for messages.
    npus
        The NPUs.
    wanted
        Its ``folding`` and ``npu`` count.

    Raises
    ------
    ValueError
        If no NPU can have a value, or there is no NPU of that number, or nothing for it.
    """
    folding = wanted.folding
    if wanted.npu is None:
        return _with_folding(name, npus, folding)
    if not 0 <= wanted.npu < len(npus):
        raise ValueError(f"{name}: npu must be 0..{len(npus) - 1}, got {wanted.npu}")
    if not folding:
        raise ValueError(f"{name}: npu {wanted.npu} must get values of a folding, got none")
    behind = wanted.npu + 1
    return (*npus[: wanted.npu], *_with_folding(name, npus[wanted.npu : behind], folding), *npus[behind:])


def _with_folding(name: str, npus: tuple[Npu, ...], folding: Mapping[str, Any]) -> tuple[Npu, ...]:
    """The NPUs, each with the values of a folding that it can have; ValueError for a value that no NPU can have."""
    both = len({npu.engine for npu in npus}) > 1
    for key, value in folding.items():
        if not any(_takes(npu, key, folding, both) for npu in npus):
            part = _part_of(key)
            which = "an NPU behind another one" if key == "buffer_words" else "a binary NPU that reads frames"
            which = f"an NPU with {flat.SWITCHES[part].part}" if part else which
            raise ValueError(f"{name}: {key} needs {which}, got {value} without")
    return tuple(
        npu.changed(**{key: value for key, value in folding.items() if _takes(npu, key, folding, both)}) for npu in npus
    )


def _part_of(key: str) -> str:
    """The part, as `flat.SWITCHES` calls it, that an NPU must have to take the value of a name, and may lack; nothing
    where there is none, or where the name itself says whether there is the part."""
    part = flat.OWNERS[key][0]
    return part if part in flat.SWITCHES and flat.SWITCHES[part].name != key else ""


def _takes(npu: Npu, key: str, folding: Mapping[str, Any], both: bool) -> bool:
    """Whether the value of a name of the folding is for this NPU; ``both``: the design has NPUs of both engines.

    If all NPUs have one engine, they get a value of the other engine too, so that their own check refuses it.
    """
    if key == "buffer_words":
        return "ring" in npu.ports.inlets
    part = _part_of(key)
    if part:
        switch = flat.SWITCHES[part].name
        return bool(folding.get(switch, npu.value(switch)))
    if key in OF_FRAMES and "host" not in npu.ports.inlets:
        return False
    return not both or all(npu.engine == engine or key not in keys for engine, keys in OF_ENGINE.items())


def _connected(network: Network, npu: Npu, wanted: Wanted) -> tuple[Npu, ...]:
    """NPUs like ``npu``, connected by the topology; ValueError if it can't have so many.

    Only NPU 0 reads the host's frames, so no other has bit planes or a binariser. In a pipeline no NPU has a pool unit
    that its layer doesn't need, unless they are asked for, and each has the engine that its layer needs.
    """
    layers = [layer.name for layer in network.layers if isinstance(layer, Weighted)]
    topology = str(wanted.topology)
    count = wanted.npus
    if topology == "pipeline":
        if count not in (None, len(layers)):
            raise ValueError(f"{network.name}: a pipeline has an NPU for each of {len(layers)} layers, got {count}")
        npus = [_with_engine(network, npu, engine) for engine in _engines(network, npu)]
        if "pool" not in wanted.folding:
            npus = [each if name in _pooled(network) else each.changed(pool=False) for each, name in zip(npus, layers)]
    else:
        if count is None or not 1 <= count <= MOST_NPUS:
            raise ValueError(f"{network.name}: a {topology} must have 1..{MOST_NPUS} NPUs, got {count}")
        npus = [npu] * count
    rest = [each.changed(**{name: flat.ABSENT[name] for name in OF_FRAMES}) for each in npus[1:]]
    return TOPOLOGIES[topology]([npus[0], *rest])


def _engines(network: Network, npu: Npu) -> list[str]:
    """The engine of each weighted layer: that of ``npu``, unless the network needs both."""
    engines = engines_of(network)
    return engines if len(set(engines)) > 1 else [npu.engine] * len(engines)


def _with_engine(network: Network, npu: Npu, engine: str) -> Npu:
    """``npu``, or one of the other engine that is as wide; a binary one reads the bit planes of the network's input."""
    other = INTEGER if engine == "integer" else Npu.of(shift_bits=plane_shift_bits(network))
    width = npu.values("kfp", "kgp", "pfp", "ol", "buffer_words", "kernel_ram")
    return npu if npu.engine == engine else other.changed(**width)


def _pooled(network: Network) -> set[str]:
    """Names of the weighted layers whose sums are pooled."""
    maker = ""
    names = set()
    for layer in network.layers:
        if isinstance(layer, Weighted):
            maker = layer.name
        elif isinstance(layer, Pool):
            names.add(maker)
    return names
