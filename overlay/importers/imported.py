"""Importing a file: all passes, one after another: read -> canonical -> quantise -> choose -> emit."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import Encoding
from bitloom.golden.file import model_digest
from bitloom.golden.host import file as hosts
from bitloom.golden.host.host import Host
from bitloom.golden.names import NAME_LENGTH, shown
from bitloom.golden.network import Model
from bitloom.golden.reading.file import naming, read_file
from bitloom.hls_gen.compiler.workloads import check_engines
from bitloom.hls_gen.design.widths import FEATURE_BITS
from bitloom.overlay.build.buildable import check_buildable

from .budget import budget
from .canonical import canonical
from .choose import EngineChoice, choices
from .emit import Emitted, emit
from .errors import ImportRefused, printable
from .host import host_of
from .onnx_file import to_graph
from .operations import OperationGraph
from .quantise import quantise, quantises_input
from .sections import Quantised, SectionGraph
from .source import SourceGraph
from .tflite_file import is_tflite, to_tflite_graph


@dataclass(frozen=True, kw_only=True, eq=False)
class Imported:
    """A network from outside, with what each pass made of it."""

    source: SourceGraph
    operations: OperationGraph
    graph: SectionGraph
    choice: EngineChoice
    emitted: Emitted
    host: Host

    @property
    def model(self) -> Model:
        """The model."""
        return self.emitted.model

    def with_classes(self, classes: Sequence[str]) -> "Imported":
        """The network with names of its classes, in the order of the file's scores; ValueError unless all have one."""
        network = self.model.network
        order = self.host.only.order
        if len(classes) != order.size or network.output.size != network.output.channels:
            raise ValueError(f"must have {order.size} names, a line for each score of the network, got {len(classes)}")
        placed = np.empty(order.size, object)
        placed[order] = list(classes)  # the network may have its outputs in another order than the file
        model = Model(replace(network, classes=tuple(placed)), self.model.arrays)
        host = replace(self.host, digest=model_digest(model))
        return replace(self, emitted=replace(self.emitted, model=model), host=host)


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """The input values of a network: real = scale * (value - zero)."""

    encoding: Encoding
    """Of the values."""
    scale: Fraction = Fraction(1)
    """> 0."""
    zero: Fraction = Fraction(0)

    @property
    def quantised(self) -> Quantised:
        """The map of these values."""
        e = self.encoding
        return Quantised(
            name="--input",
            base=self.scale * (e.low - self.zero),
            step=self.scale * e.step,
            levels=(e.high - e.low) // e.step,
        )


_NUMBER = r"-?[0-9./]{1,40}(?:e[+-]?\d{1,2})?"
_SPEC = re.compile(rf"(bipolar|signed|unsigned)(\d{{0,2}})(?::({_NUMBER}))?(?::({_NUMBER}))?", re.ASCII)


def parse_input(text: str) -> InputSpec:
    """Read ``KIND[BITS][:SCALE[:ZERO]]``, such as ``unsigned8:1/255`` or ``bipolar``.

    Raises
    ------
    ValueError
        If it isn't of that form.
    """
    match = _SPEC.fullmatch(text)
    rule = "must be bipolar, signedBITS or unsignedBITS, perhaps with :SCALE and :ZERO, as in unsigned8:1/255"
    if match is None:
        raise ValueError(f"--input: {rule}, got {shown(text)}")
    kind, bits, scale, zero = match.groups()
    try:
        spec = InputSpec(
            encoding=Encoding(kind, int(bits or (1 if kind == "bipolar" else 8))),
            scale=Fraction(scale or 1),
            zero=Fraction(zero or 0),
        )
    except (ValueError, ZeroDivisionError) as e:
        raise ValueError(f"--input: {rule}, got {shown(text)} ({e})") from None
    if spec.scale <= 0 or spec.encoding.bits + (kind == "unsigned") > FEATURE_BITS:
        rule = f"the scale must be > 0 and bits at most {FEATURE_BITS}, {FEATURE_BITS - 1} if unsigned"
        raise ValueError(f"--input: {rule}, got {shown(text)}")
    return spec


def import_file(
    path: str | os.PathLike[str],
    *,
    spec: InputSpec | None = None,
    engine: str = "auto",
    name: str = "",
    real_weights: bool = False,
) -> Imported:
    """Import a file.

    Parameters
    ----------
    path : path
        Of an ONNX file or a TFLite file.
    spec : InputSpec, optional
        The network's input, where the network doesn't quantise that itself.
    engine : str
        See `choose`.
    name : str
        Of the network; by default made of the file's name.
    real_weights : bool
        Whether weights stay the file's real numbers, of which the layers take the signs, where the file does so too.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If the file is damaged.
    ImportRefused
        If something in it can't be imported: a line for each such thing.
    """
    name = name or network_name(path)
    return import_graph(read_graph(path), spec=spec, engine=engine, name=name, real_weights=real_weights)


def read_graph(path: str | os.PathLike[str]) -> SourceGraph:
    """Read a TFLite file, or an ONNX file and the files with external data that it names; errors are those of
    `import_file`, in one line with the path in front."""
    data = read_file(path)
    with naming(os.fspath(path)):
        return to_tflite_graph(data) if is_tflite(path, data) else to_graph(data, Path(path).parent)


def import_graph(
    source: SourceGraph, *, spec: InputSpec | None = None, engine: str = "auto", name: str, real_weights: bool = False
) -> Imported:
    """Import a source graph: see `import_file`."""
    with budget(sum(values.nbytes for values in source.constants.values())):
        source = source.needed()
        operations = canonical(source)
        graph = quantise(operations, _levels_of_input(source, spec, operations))
        if real_weights and not graph.is_chain:
            raise ImportRefused(["real weights are kept in chains of layers, got maps that several layers read"])
        choice, emitted = _built(graph, choices(graph, engine), name)
        if real_weights:
            emitted = _with_real_weights(emitted)
        host = host_of(source, operations, graph, choice, emitted)
        network = emitted.model.network
        try:
            hosts.from_bytes(hosts.to_bytes(host), host.digest, network.input, network.output)
        except ValueError as e:  # such as axes or links that are too many
            raise ImportRefused([f"what the host computes must be written to a file: {e}"]) from None
        return Imported(source=source, operations=operations, graph=graph, choice=choice, emitted=emitted, host=host)


def _levels_of_input(source: SourceGraph, spec: InputSpec | None, operations: OperationGraph) -> Quantised | None:
    """The levels of the input: of ``spec``, or of an 8-bit input that the file doesn't quantise again; else None."""
    if spec is not None:
        return spec.quantised
    dtype = source.source.dtype
    if dtype in (np.uint8, np.int8) and not quantises_input(operations):
        return InputSpec(encoding=Encoding("unsigned" if dtype == np.uint8 else "signed", 8)).quantised
    return None


def _built(graph: SectionGraph, tried: Sequence[EngineChoice], name: str) -> tuple[EngineChoice, Emitted]:
    """The first choice whose model equals the file for every sum, and which the compiler takes with the chosen engines;
    else the last choice, whose model the compiler must take."""
    *preferred, last = tried
    refusals = dict[str, str]()
    for choice in preferred:
        try:
            emitted = emit(graph, choice, name)
            check_engines(emitted.model.network, [choice.engines[place] for place in graph.weighted])
            _check_buildable(emitted)
        except ValueError as e:
            reason = str(e).splitlines()[0]
            refusals[reason] = f"on the {choice.engines[0]} engine: {reason}"
        else:
            wrong = sum(built.wrong[0] for built in emitted.built)
            if not wrong:
                return choice, emitted
            reason = f"{wrong:,} sums would be one level off"
        other = last.engines[0]
        why = f"the {other} engine computes all: on the {choice.engines[0]} one, which costs less, {reason}"
        last = replace(last, why=why)
    try:
        emitted = emit(graph, last, name)
        _check_buildable(emitted)
    except ImportRefused as e:
        others = [line for reason, line in refusals.items() if reason not in e.lines]
        raise ImportRefused([*others, *e.lines]) from None
    return last, emitted


def _with_real_weights(emitted: Emitted) -> Emitted:
    """The model, its layers taking the signs of the file's real weights; ImportRefused if the file has none."""
    network = emitted.model.network
    real = emitted.real
    if not real:
        raise ImportRefused(["real weights must be made binary by BipolarQuant or Sign, got no such weights"])
    arrays = {**emitted.model.arrays, **{name: {"weight": values} for name, values in real.items()}}
    return replace(emitted, model=Model(network.with_real_weights(real), arrays))


def _check_buildable(emitted: Emitted) -> None:
    """Raise ImportRefused, with the name of the file's node, if the compiler can't compute a network."""
    try:
        check_buildable(emitted.model)
    except ValueError as e:
        layer, _, rule = str(e).partition(": ")
        nodes = {name: built.nodes for built in emitted.built for name in built.layers}
        line = f"{printable(nodes[layer][0])} (layer {layer}): {rule}" if nodes.get(layer) else str(e)
        raise ImportRefused([line]) from None


def network_name(path: str | os.PathLike[str]) -> str:
    """A network's name from a file's: letters, digits, ``_``, ``-`` and ``.``."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(path).stem).strip("-.")
    return stem[:NAME_LENGTH] or "imported"
