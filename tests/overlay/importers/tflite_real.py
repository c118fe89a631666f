"""Networks as people have them, beside TFLite's reference kernels (ai-edge-litert, ``OpResolverType.BUILTIN_REF``).

``python -m tests.overlay.importers.tflite_real FOLDER`` prints a table of the TFLite files in a folder: which are
imported, how many values of their maps were compared with the kernels' and how many of these differ, and why the others
are refused. Without ai-edge-litert it compares nothing.
"""

import struct
import sys
from pathlib import Path

import numpy as np
import tflite

from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import real_inputs, sample_inputs

MOVES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE")
"""Operators that only put values into another order, of which golden has no map."""
DIMENSION_PLACE = 16
"""Offset of the field ``quantized_dimension`` in the table of a quantisation."""


VERSION_PLACE = 8
"""Offset of the field ``version`` in the table of an operator's code."""
KNOWN = {tflite.BuiltinOperator.TILE: 2}
"""The newest version of operators that LiteRT's table of reference kernels names, whose kernels are those of newer
ones."""


def for_litert(data):
    """A file as LiteRT takes it: biases of one axis name that axis as the quantised one, and operators have a version
    of KNOWN."""
    patched = bytearray(data)
    model = tflite.Model.GetRootAs(data, 0)
    for code in map(model.OperatorCodes, range(model.OperatorCodesLength())):
        newest = KNOWN.get(code.BuiltinCode(), code.Version())
        if code.Version() > newest:
            struct.pack_into("<i", patched, code._tab.Pos + code._tab.Offset(VERSION_PLACE), newest)
    graph = model.Subgraphs(0)
    for tensor in map(graph.Tensors, range(graph.TensorsLength())):
        quantised = tensor.Quantization()
        place = quantised._tab.Offset(DIMENSION_PLACE) if quantised else 0
        if place and quantised.QuantizedDimension() >= max(1, tensor.ShapeLength()):
            struct.pack_into("<i", patched, quantised._tab.Pos + place, 0)
    return bytes(patched)


def kernels(data, images):
    """What TFLite's reference kernels make of each image: (N, ...) arrays by number of the operator.

    Raises
    ------
    ImportError
        Without ai-edge-litert.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=for_litert(data),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    (source,) = interpreter.get_input_details()
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    results = [[] for _ in range(graph.OperatorsLength())]
    for image in images:
        interpreter.set_tensor(source["index"], image[None])
        interpreter.invoke()
        for number, made in enumerate(results):
            made.append(interpreter.get_tensor(int(graph.Operators(number).Outputs(0))).copy())
    return [np.stack(made) for made in results]


def random_images(imported, count, seed=0):
    """Images as the file takes them, ends among them: (N, ...)."""
    images = real_inputs(imported, sample_inputs(imported, max(1, count - 4), seed))[-count:]
    return images.astype(imported.source.source.dtype)


def maps(imported, images):
    """What golden has behind the last node of each section, in the file's integers: name of the node -> values."""
    trace = imported.model.trace(imported.host.to_input(images, imported.model.network.input.shape))
    values = dict(zip((layer.name for layer in imported.model.network.layers), trace))
    out = {}
    for built, section, held in zip(
        imported.emitted.built, imported.graph.sections, [*imported.choice.held.values()][1:]
    ):
        nodes = [name for name in built.nodes if name.rpartition("_")[0] not in MOVES]
        level = (values[built.layers[-1]] - held.zero) // held.stride
        quantised, source = section.quantised, section.reads[0].source
        if getattr(section, "copies", False) and quantised.levels == source.levels:
            quantised = source  # a copy may hold integers less their zero point
        out[nodes[-1]] = int(quantised.base) + level
    return out


def compare(path, imported, count=6):
    """How many values of the maps of a file were compared with the kernels' of random images, and how many differ."""
    images = random_images(imported, count)
    wanted = kernels(Path(path).read_bytes(), images)
    compared = differ = 0
    for node, got in maps(imported, images).items():
        values = wanted[int(node.rpartition("_")[2])].reshape(len(images), -1)
        orders = got, got.transpose(0, 3, 1, 2)  # golden's; channels first, as behind a TRANSPOSE
        compared += values.size
        differ += min(int((order.reshape(len(images), -1) != values).sum()) for order in orders)
    return compared, differ


def report(path):
    """A line about a file."""
    try:
        imported = import_file(path)
    except ValueError as e:
        first, *more = str(e).removeprefix(f"{path}: ").splitlines()
        return f"refused: {first}" + (f" and {len(more)} more" if more else "")
    off = sum(built.wrong[0] for built in imported.emitted.built)
    layers = f"{len(imported.model.network.layers)} layers" + (f", {off:,} sums are one level off" if off else "")
    try:
        compared, differ = compare(path, imported)
    except ImportError:
        return f"imported: {layers}, nothing compared without ai-edge-litert"
    return f"imported: {layers}, {differ:,} of {compared:,} values differ"


if __name__ == "__main__":
    files = sorted(path for path in Path(sys.argv[1]).iterdir() if path.suffix == ".tflite")
    reports = []
    for file in files:
        reports.append(report(file))
        print(f"{file.stem[:40]:40} {reports[-1]}", flush=True)
    print(f"{sum(line.startswith('imported') for line in reports)} of {len(files)} files are imported")
