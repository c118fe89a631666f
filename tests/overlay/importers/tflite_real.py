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
from bitloom.overlay.importers.verify import held_values, real_inputs, sample_inputs

NEAR = 1e-6
"""How far two values may be apart that are the same but for the rounding of floating point."""
DIMENSION_PLACE = 16
"""Offset of the field ``quantized_dimension`` in the table of a quantisation."""


VERSION_PLACE = 8
"""Offset of the field ``version`` in the table of an operator's code."""
KNOWN = {tflite.BuiltinOperator.TILE: 2, tflite.BuiltinOperator.DEPTH_TO_SPACE: 1}
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
    """Results of TFLite's reference kernels for each image: (N, ...) arrays by number of the operator.

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
        for number, tensors in enumerate(results):
            tensors.append(interpreter.get_tensor(int(graph.Operators(number).Outputs(0))).copy())
    return [np.stack(tensors) for tensors in results]


def random_images(imported, count, seed=0):
    """Images as the file takes them, ends among them: (N, ...)."""
    images = real_inputs(imported, sample_inputs(imported, max(1, count - 4), seed))[-count:]
    return images.astype(imported.source.source.dtype)


def maps(imported, images):
    """Golden's values where a section begins or the network ends, in the file's order: the tensor -> (N, values)."""
    model = imported.model
    trace = model.trace(imported.host.to_input(images, model.network.input.shape))
    values = dict(zip((layer.name for layer in model.network.layers), trace))
    makers = ["", *(built.layers[-1] for built in imported.emitted.built)]
    out = {}
    for reading in (reading for section in imported.graph.sections for reading in section.reads):
        if reading.map:
            out[reading.tensor] = held_values(imported, values[makers[reading.map]], reading).reshape(len(images), -1)
    for output, by_host in zip(imported.graph.outputs, imported.host.outputs):
        if not by_host.closing:
            out[output.tensor] = by_host.closed(trace[-1]).reshape(len(images), -1)
    return out


def by_kernels(path, imported, images):
    """The same by the kernels. Of the operations that an operator became the last one has the kernel's result."""
    results = kernels(Path(path).read_bytes(), images)
    places = {node.outputs[0]: node.name.rpartition("_")[2] for node in imported.source.nodes}
    numbers = {tensor: int(place) for tensor, place in places.items() if place.isdigit()}  # others are none of the file
    values = {imported.operations.source: images}
    for operation in imported.graph.operations:
        values[operation.makes] = operation.run(*(values[name].astype(float) for name in operation.reads))
        by_rule = values[operation.makes]
        result = results[numbers[operation.makes]] if operation.makes in numbers else by_rule
        if result.size == by_rule.size and result.shape[1] == 1:  # others are taken apart, for a dilated convolution
            values[operation.makes] = result.reshape(by_rule.shape)
    return values


def compare(path, imported, count=6):
    """How many values of the maps of a file were compared with the kernels' of random images, and how many differ."""
    images = random_images(imported, count)
    wanted = by_kernels(path, imported, images)
    compared = differ = 0
    for tensor, got in maps(imported, images).items():
        compared += got.size
        differ += int((np.abs(got - wanted[tensor].reshape(got.shape)) > NEAR).sum())
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
