"""Campaign imports: random files of other tools, imported and compared with what these tools compute of them.

A case holds the file. It is imported, or refused in one line a reason. What is imported can be built, simulated
hardware gives golden's outputs, and every output of golden with the steps in the host's file is the authority's
(authorities.py), for random images and for extreme ones:

- all values of TFLite files, bit for bit;
- of ONNX files all but those of images of which a quantiser reads a value on a boundary, to within the rounding of
  floating point, which may fall to either side; where floating point computes every number exactly these, too;
- where the import says that some sums are levels off, golden's maps are compared with the operations between them, for
  the same images (`images_off`): no map is off by more than the import says, and only of images of which one is off
  outputs may be others.
"""

import re
import time
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from zlib import compress, decompressobj

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array
from bitloom.golden.host import file as hosts
from bitloom.golden.host.host import Host
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.overlay.build.chosen_design import chosen_design
from bitloom.overlay.fuzz.authorities import LITERT, ONNXRUNTIME, QONNX, Authority, Computed, FileRefused
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.designs import IMPORTED
from bitloom.overlay.fuzz.hardware import compared, hardware
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_files import RandomFile
from bitloom.overlay.fuzz.random_onnx import random_onnx
from bitloom.overlay.fuzz.random_tflite import random_tflite
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import Imported, import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.source import SourceGraph
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from bitloom.overlay.importers.verify import images_off, real_inputs, sample_inputs, verify

LARGEST = 16 << 20
"""Bytes of a file at most, when a case is run."""
SECONDS = 5.0
"""Time that an import of such a small file takes at most, of a processor."""
ENGINES = (*["auto"] * 6, "integer", "binary")
"""Engines that are asked for."""
IMAGES = 4
"""Random images; as many have numbers beyond the ends of the input, and four are extreme ones."""
SIMULATED = 2
"""Images that simulated hardware computes."""
NEAR = 1e-4
"""How far real numbers that leave may be off, relative to the largest one: authorities have 32 bits."""
WRITTEN = 2.01
"""Steps by which scores may be off that the host leaves as they are, and that a file's kernel writes as integers."""
LEAST_LOGARITHM = -15.5
"""Of numbers below it TFLite's LOG_SOFTMAX may make its lowest integer, by the scale of what it reads."""
LONGEST_LINE = 600
RULE = 160
"""Characters of a rule at most, as counts of refusals have it."""
DIGEST = "0123456789abcdef" * 4


@dataclass(frozen=True)
class ImportKind:
    """A kind of files that are imported."""

    draw: Callable[[Pick], RandomFile]
    """Draws one."""
    read: Callable[[bytes], SourceGraph]
    """Reads a file as the import does."""
    authority: Authority
    """The tool that computes it."""


KINDS = {
    "qdq": ImportKind(partial(random_onnx, "qdq"), to_graph, ONNXRUNTIME),
    "qoperator": ImportKind(partial(random_onnx, "qoperator"), to_graph, ONNXRUNTIME),
    "qonnx": ImportKind(partial(random_onnx, "qonnx"), to_graph, QONNX),
    "tflite": ImportKind(random_tflite, to_tflite_graph, LITERT),
}
"""All kinds by name."""


@dataclass(eq=False)
class _WrongImport(Exception):
    """Something that is wrong."""

    word: str
    what: str


@dataclass(frozen=True, eq=False)
class _ImportResults:
    """The maps and outputs of an imported network for images."""

    imported: Imported
    host: Host
    """As its file has it."""
    images: Array
    features: Array
    """The input map of each image."""
    outputs: Array
    """Golden's outputs."""


class ImportCampaign:
    """Random files of other tools.

    Parameters
    ----------
    kinds
        Kinds of files that are picked from.

    Raises
    ------
    ValueError
        If what reads these files is not installed.
    """

    def __init__(self, kinds: Sequence[str] = tuple(KINDS)):
        missing = [name for name in ("onnx", "tflite", "flatbuffers") if find_spec(name) is None]
        if missing:
            raise ValueError(f"campaign imports needs the extra import: {pip_install('import')} (no {missing[0]})")
        self._kinds = kinds

    def case(self, pick: Pick) -> Case:
        """A file of any kind."""
        kind = pick.of(self._kinds)
        seed = pick.integer(0, 2**32 - 1)
        file = KINDS[kind].draw(pick)
        return {
            "kind": kind,
            "file": b64encode(compress(file.data, 9)).decode(),
            "twin": b64encode(compress(file.twin, 9)).decode(),
            "halves": file.halves,
            "seed": seed,
            "engine": pick.of(ENGINES),
        }

    def run(self, case: Case) -> tuple[str, str]:
        """Run a case: "exact" if all outputs are the authority's, "tied" if floating point decided otherwise at a
        boundary, "inexact" if they differ for images alone of which a map is off as the import says, "refused: ..."
        with the rule; "not compared" without an authority, or where it refuses the file; "not simulated" follows where
        the network needs both engines, or more room than `IMPORTED` has; all else is a fault."""
        kind = case["kind"]
        data, twin = (decompressobj().decompress(b64decode(case[name]), LARGEST) for name in ("file", "twin"))
        try:
            word = _judged(kind, data, twin, case)
        except _WrongImport as finding:
            return finding.word, f"{kind}: {finding.what}"
        return f"{kind} {word}", ""


def _judged(kind: str, data: bytes, twin: bytes, case: Case) -> str:
    """How a case ends; _WrongImport where something is wrong."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        imported = _imported(kind, data, case)
        if isinstance(imported, str):
            return imported
        _build(imported)
        try:
            verify(imported, 1, case["seed"])
        except ValueError as error:
            raise _WrongImport("not verified", str(error)) from None
        results = _results(imported, case["seed"])
    if warned:
        raise _WrongImport("warning", f"there must be no warning, got: {warned[0].message}")
    simulated = _simulated(results)
    word = _by_authority(KINDS[kind].authority, data, twin, results, exact=case["halves"])
    return word if simulated else f"{word}, not simulated"


def _imported(kind: str, data: bytes, case: Case) -> Imported | str:
    """The model that a file becomes, or the word for a file that is refused."""
    begin = time.process_time()
    result: Imported | str
    try:
        result = import_graph(KINDS[kind].read(data), name="fuzzed", engine=case.get("engine", "auto"))
    except ValueError as error:
        result = _refusal(error)
    took = time.process_time() - begin
    if took > SECONDS:
        raise _WrongImport("slow", f"an import must take at most {SECONDS:g} s, got {took:.1f}")
    return result


def _refusal(error: ValueError) -> str:
    """The word for a file that is refused."""
    lines = error.lines if isinstance(error, ImportRefused) else tuple(str(error).splitlines())
    unclear = [line for line in lines if not line.isprintable() or len(line) > LONGEST_LINE]
    if not lines or unclear or not (isinstance(error, ImportRefused) or len(lines) == 1):
        raise _WrongImport("unclear", f"must be refused in one line for each reason, got: {unclear or lines}")
    return f"refused: {_rule(lines[0])}"


def _rule(line: str) -> str:
    """Rule of a message, alike for all files: without names and numbers."""
    rule = re.sub(r"^\S+ \(\S+\)( and \d+ more like it)?: ", "", line).partition(", got ")[0].partition("; ")[0]
    return re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "N", rule)[:RULE]


def _build(imported: Imported) -> None:
    """Compile a model for the design that `bitloom build` takes."""
    model = imported.model
    try:
        chosen = chosen_design(model)
        design = chosen.design(model.network.name, [model])
        compile_model(model, Manifest.of(design, DIGEST), chosen.choices, host=imported.host)
    except ValueError as error:
        raise _WrongImport("not built", f"what is imported must be built, got: {error}") from None


def _images(imported: Imported, seed: int) -> Array:
    """Images as the file takes them: random ones, extreme ones, and of real numbers some beyond the input's ends."""
    source = imported.source.source
    inside = real_inputs(imported, sample_inputs(imported, IMAGES, seed)).astype(source.dtype)
    rng = np.random.default_rng(seed)
    low, high = float(inside.min()), float(inside.max())
    if source.dtype.kind == "f":
        room = 0.2 * (high - low)
        more = rng.uniform(low - room, high + room, (IMAGES, *inside.shape[1:]))
    else:
        more = rng.integers(int(low), int(high) + 1, (IMAGES, *inside.shape[1:]))
    return np.concatenate([inside, more.astype(source.dtype)])


def _results(imported: Imported, seed: int) -> _ImportResults:
    """Golden's maps and outputs for images."""
    images = _images(imported, seed)
    network = imported.model.network
    host = hosts.from_bytes(hosts.to_bytes(imported.host), imported.host.digest, network.input, network.output)
    features = host.to_input(images, network.input.shape)
    return _ImportResults(imported, host, images, features, imported.model.forward(features))


def _simulated(results: _ImportResults) -> bool:
    """Whether one of the designs `IMPORTED` can run the network, on which it then computed some of the images;
    _WrongImport unless as golden does."""
    engines = set(results.imported.choice.engines)
    if len(engines) > 1:
        return False
    target = hardware(IMPORTED[engines.pop()])
    try:
        program = compile_model(results.imported.model, target.manifest)
    except ValueError:
        return False
    word, what = compared(target, program, results.features[:SIMULATED], results.outputs[:SIMULATED])
    if what:
        raise _WrongImport(word, what)
    return True


def _by_authority(authority: Authority, data: bytes, twin: bytes, results: _ImportResults, *, exact: bool) -> str:
    """How golden's outputs compare with those of an authority; _WrongImport where they differ, and nothing says why."""
    if authority.missing:
        return f"not compared: {authority.package} is not installed"
    try:
        computed = authority.run(data, twin, results.images)
    except FileRefused as refusal:
        return f"not compared: {_rule(str(refusal))}"
    off = np.zeros(len(results.images), bool)
    if any(built.wrong[1] for built in results.imported.emitted.built):
        try:
            off = images_off(results.imported, results.features)
        except ValueError as error:
            raise _WrongImport("not verified", str(error)) from None
    return _compared(results.host, results.outputs, computed, exact=exact, off=off)


def _compared(host: Host, outputs: Array, computed: Computed, *, exact: bool, off: Array) -> str:
    """How outputs compare with an authority's; _WrongImport where they differ, and nothing says why. ``off``: images of
    which a map is off as the import says."""
    different = np.zeros(len(outputs), bool)
    says = ""
    for output, wanted, steps in zip(host.outputs, computed.outputs, computed.steps, strict=True):
        got = output.closed(outputs)
        room = NEAR * max(1.0, float(np.abs(wanted).max(initial=0)))
        if output.closing and steps is not None:  # the host has real numbers where the file has integers
            wanted = steps.real(wanted)
            room = WRITTEN * steps.scale
            got, wanted = (np.maximum(x, max(steps.least, LEAST_LOGARITHM)) for x in (got, wanted))
        if got.size != wanted.size:
            raise _WrongImport("wrong", f"{output.name}: must have the shape {wanted.shape}, got {got.shape}")
        got, wanted = (x.reshape(len(outputs), -1) for x in (got, wanted))
        with np.errstate(invalid="ignore"):
            away = np.where(got == wanted, 0, np.abs(got - wanted))
        wrong = ~(away <= room)  # also what is no number
        different |= wrong.any(axis=1)
        if wrong.any() and not says:
            says = f"{output.name}: {int(wrong.sum())} of {away.size} values, by up to {away.max():g}"
    if not different.any():
        return "exact"
    unexplained = different & ~off
    if unexplained.any() and (exact or (unexplained & ~computed.tied).any()):
        raise _WrongImport("wrong", f"outputs must be the authority's, got others in {says}")
    return "tied" if unexplained.any() else "inexact"
