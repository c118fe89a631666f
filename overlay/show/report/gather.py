"""Gather all that a report shows, from the build, the compiler's plan and the run."""

from shlex import join
from typing import Any

from bitloom.golden import zoo as networks
from bitloom.golden.distribution import version
from bitloom.golden.encoding import Encoding
from bitloom.golden.file import model_digest
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.conv import Weighted
from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.sharing import weight_copies
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.synthesis import area
from bitloom.overlay.area_model.estimate import error, estimate
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.loading import loading
from bitloom.overlay.build.measured import Measured
from bitloom.overlay.explore.advice import advice
from bitloom.overlay.platform.boards import CLOCK_MHZ, Board

from .compiled import Compiled
from .layer_work import LayerWork, layers
from .memories import memories
from .programs import program_facts
from .report import AreaFacts, LayerFacts, NpuCycles, Report
from .roofline import roofline
from .text import TIMES
from .timeline import timeline
from .units import units_by_model, units_by_synthesis


def gather(
    compiled: Compiled,
    run: Measured,
    *,
    given: str | None = None,
    clock_mhz: float = CLOCK_MHZ,
    synthesise: bool = False,
    board: Board | None = None,
) -> Report:
    """Gather the report of a run.

    Parameters
    ----------
    compiled
        The network on its build.
    run
        Run that was measured.
    given
        The network as the command line names it; None: by the build.
    clock_mhz
        Clock that rates and times assume.
    synthesise
        Take the area from Yosys instead of the model.
    board
        The board that must hold what is advised; None: any size will do.

    Raises
    ------
    BuildError
        If Yosys is needed and missing.
    ValueError
        If the run is not of this build and network.
    """
    network = compiled.network
    plans = compiled.plans
    design = compiled.build.design
    for what, expected, got in (
        ("network", network.name, run.network),
        ("design", network.design_digest[:16], run.design_digest[:16]),
        ("model", network.model_digest[:16], run.model_digest[:16]),
    ):
        if expected != got:
            raise ValueError(f"{compiled.build.folder}: the run must be of {what} {expected}, got {got}")
    work = layers(compiled)
    loads = loading(network, compiled.manifest)
    times = timeline(compiled, run.frames, loads)
    return Report(
        network=compiled.model.network,
        weights=_source(compiled, given),
        design=design,
        digest=compiled.build.digest,
        mapping=tuple(n for program in network.programs for n in program.mapping),
        crossings=frozenset[tuple[int, int]]().union(*map(crossings, plans)),
        run=run,
        clock_mhz=clock_mhz,
        layers=tuple(_layers(compiled)),
        work=tuple(work),
        npus=tuple(_npus(compiled, run, work)),
        timeline=times,
        memories=tuple(memories(compiled, [program.stores for program in times.programs])),
        weight_copies=tuple(
            {str(copies): 0 for each in plans for copies in weight_copies(each.lowered, each.foldings)}
        ),
        advice=tuple(advice(compiled.model, design, compiled.build.choices_of(network.name), board)),
        area=_area(design, synthesise),
        points=tuple(roofline(compiled, run, work)),
        commands=tuple(commands(compiled.build, run.frames, given)),
        version=version(),
        loading=loads,
        programs=tuple(program_facts(compiled, times, loads)) if loads else (),
    )


def _source(compiled: Compiled, given: str | None) -> str:
    """Where the weights come from: the file that was given, the network of ours that it is, or the build's copy."""
    name = compiled.network.name
    if given and given not in compiled.build.programs:
        return networks.source(given)
    if name in networks.names() and model_digest(networks.load(name)) == compiled.network.model_digest:
        return networks.source(name)
    return f"model file {compiled.build.models[name]}"


def crossings(plan: Plan) -> frozenset[tuple[int, int]]:
    """(NPU that makes a map, NPU that reads or adds it), of all maps."""
    layers = plan.lowered.layers
    on = {p.name: n for p, n in zip(layers, plan.mapping)}
    needs = [(name, n) for p, n in zip(layers, plan.mapping) for name in (p.reads, p.joins, p.adds)]
    return frozenset((on[name], n) for name, n in needs if name in on)


def _layers(compiled: Compiled) -> list[LayerFacts]:
    """All layers of the network, each with the NPU that computes it."""
    out = []
    network = compiled.model.network
    npus = {name: npu for each in compiled.network.programs for (name, _), npu in zip(each.layers, each.mapping)}
    npus[INPUT] = 0
    for layer in network.layers:
        source = network.sources(layer)[0]
        after = network.maps[layer.name]
        weighted = isinstance(layer, Weighted)
        npu = npus.setdefault(layer.name, npus[network.reads[layer.name][0]])
        out.append(
            LayerFacts(
                name=layer.name,
                kind=layer.kind,
                what=_layer_words(layer),
                source=source.shape,
                output=after.shape,
                encoding=_encoding(after.encoding),
                weights=compiled.model.arrays[layer.name]["weight"].size if weighted else 0,
                weight_encoding=_encoding(layer.weight) if isinstance(layer, Weighted) else "",
                npu=npu,
            )
        )
    return out


def _encoding(encoding: Encoding) -> str:
    """An encoding in words."""
    return f"{encoding.kind} {encoding.bits}"


def _layer_words(layer: Any) -> str:
    """Window, accumulation and levels of a layer, where it has any."""
    parts = []
    if hasattr(layer, "kernel"):
        parts.append(f" {TIMES} ".join(map(str, layer.kernel)))
        parts += [
            f"{what} {_common_or_all(getattr(layer, what))}"
            for what, none in (("stride", 1), ("padding", 0))
            if set(getattr(layer, what)) != {none}
        ]
    if getattr(layer, "accumulate", "popcount") != "popcount":
        words = getattr(layer, "word_channels", 0)
        parts.append(f"accumulate {layer.accumulate}" + (f" of {words}" if words else ""))
    if getattr(layer, "levels", 1) > 1:
        parts.append(f"{layer.levels} levels")
    return ", ".join(parts)


def _common_or_all(values: tuple[int, ...]) -> str:
    """The common number of all values, or else all values."""
    return str(values[0]) if len(set(values)) == 1 else "/".join(map(str, values))


def _npus(compiled: Compiled, run: Measured, work: list[LayerWork]) -> list[NpuCycles]:
    """The counts of each NPU."""
    out = []
    for n, npu in enumerate(compiled.build.design.npus):
        npu_work = [w for w in work if w.npu == n]
        keys = ["beats", *(pulse for pulse in npu.pulses if pulse != "beat")]
        out.append(
            NpuCycles(
                npu=n,
                layers=tuple(w.label for w in npu_work),
                lanes=npu.lanes,
                operations=sum(w.operations for w in npu_work),
                ideal=sum(w.beats for w in npu_work),
                spent={key: run.steady(f"npu{n}_{key}") for key in keys},
            )
        )
    return out


def _area(design: Design, synthesise: bool) -> AreaFacts:
    """Area by Yosys or by the model."""
    if synthesise:
        synthesised = area(design)
        return AreaFacts(synthesised.total, "yosys", error(), units_by_synthesis(synthesised))
    return AreaFacts(estimate(design), "model", error(), units_by_model(design))


def commands(build: Build, frames: int, given: str | None = None) -> list[str]:
    """Commands for a terminal that make a report's build and figures again.

    Parameters
    ----------
    build
        The build; ``bitloom build`` is among the commands only where it made the build.
    frames
        Of the run.
    given
        The network as the command line named it; None: not at all.
    """
    folder = str(build.folder)
    named = [given] if given else []
    return [
        *([join(build.command)] if build.command else []),
        *(join(["bitloom", command, folder, *named, "--frames", str(frames)]) for command in ("simulate", "report")),
        join(["bitloom", "area", folder]),
    ]
