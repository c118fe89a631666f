"""How long golden's fast forward pass takes for the networks of MLPerf Tiny, beside onnxruntime's int8.

Onnxruntime runs the same layers with the same weights: QLinearConv and QGemm on unsigned features of 8 bits, one scale
for all results of a layer. Its values are others, as its additions take 8 bits where the network's take 9, and its
scales are real numbers; only its time is compared. Both are warmed up and then run in turn, on as many threads; ms is
the median of rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bitloom.driver.predictor import Progress
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels import packed
from bitloom.golden.kernels.tiled import cpu
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny
from bitloom.overlay.build.images import random_images

from .contenders import Contender
from .convolutions import TimedRow, machine, time_in_turns

GOLDEN = "golden"
ONNXRUNTIME = "onnxruntime int8"
BATCHES = (1, 64)
ROUNDS = 15
OPSET, MICROSOFT_OPSET, IR_VERSION = 17, 1, 8


def measure(
    names: Sequence[str], *, batches: Sequence[int] = BATCHES, rounds: int = ROUNDS, progress: Progress | None = None
) -> list[TimedRow]:
    """Time golden and onnxruntime on this processor.

    Parameters
    ----------
    names
        Of `mlperf_tiny.NETWORKS`.
    batches
        Numbers of images.
    rounds
        Rounds of which the median is taken.
    progress
        Called with (networks and batches done, all of them).

    Returns
    -------
    list
        A row for each network, batch and implementation: ``network``, ``batch``, ``implementation``, ``ms`` a frame,
        ``times_onnxruntime``, ``device``, ``threads``, and ``reason``: why ms is None, else "".
    """
    rows: list[TimedRow] = []
    cases = [(name, batch) for name in names for batch in batches]
    for number, (name, batch) in enumerate(cases, 1):
        model = mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]())
        images = random_images(model.network, batch, 1)
        compared = [
            Contender(GOLDEN, runs=[lambda model=model, images=images: packed.forward(model, images)]),
            onnxruntime_contender(model, batch),
        ]
        time_in_turns(compared, rounds)
        baseline = compared[-1].ms
        for contender in compared:
            ms = contender.ms
            rows.append(
                {
                    "network": name,
                    "batch": batch,
                    "implementation": contender.implementation,
                    "ms": None if ms is None else ms / batch,
                    "times_onnxruntime": ms / baseline if ms and baseline else None,
                    "device": machine("cpu").partition(", PyTorch")[0],
                    "threads": cpu.processors(),
                    "reason": contender.reason,
                }
            )
        if progress is not None:
            progress(number, len(cases))
    return rows


def onnxruntime_contender(model: Model, batch: int) -> Contender:
    """Onnxruntime's session for the layers of a network, on random values; its one way to run gives the result."""
    try:
        import onnx
        import onnxruntime
    except ImportError as e:
        return Contender(ONNXRUNTIME, reason=f"{e.name} was not found: pip install {e.name}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = cpu.processors()
    file = _ModelWriter(model, onnx).message(batch).SerializeToString()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    shape = session.get_inputs()[0].shape
    values = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    return Contender(ONNXRUNTIME, runs=[lambda: session.run(None, {INPUT: values})])


@dataclass
class _ModelWriter:
    """A model's layers as nodes on quantised integers."""

    model: Model
    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def message(self, batch: int) -> Any:
        """The model as a message of ONNX, for batches of so many images."""
        network = self.model.network
        tensors: dict[str, str] = {INPUT: INPUT}
        for layer in network.layers:
            read = [tensors[name] for name in network.reads[layer.name]]
            tensors[layer.name] = read[0] if isinstance(layer, Requantise) else self._node(layer, read)
        helper = self.onnx.helper
        kind = self.onnx.TensorProto.UINT8
        height, width, channels = network.input.shape
        graph = helper.make_graph(
            self.nodes,
            network.name,
            [helper.make_tensor_value_info(INPUT, kind, [batch, channels, height, width])],
            [helper.make_tensor_value_info(tensors[network.layers[-1].name], kind, None)],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", MICROSOFT_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _node(self, layer: Layer, read: Sequence[str]) -> str:
        """Append the layer's node; the name of its result."""
        source = self._levels(f"{layer.name}_x", 1, np.uint8(0))
        result = self._levels(layer.name, 64, np.uint8(0))
        more: dict[str, Any] = {}
        if isinstance(layer, Add):
            kind = "QLinearAdd"
            inputs = [read[0], *source, read[1], *source, *result]
        elif isinstance(layer, AvgPool):
            kind = "QLinearGlobalAveragePool"
            inputs = [read[0], *source, *result]
            more = {"channels_last": 0}
        else:
            assert isinstance(layer, Conv | Dense)
            weight = np.moveaxis(self.model.weights(layer.name).astype(np.int8), 3, 1)  # (O, C, rows, columns)
            kernel = self._levels(f"{layer.name}_w", 1, np.int8(0))
            if isinstance(layer, Dense):
                flat = f"{layer.name}_flat"
                self.nodes.append(self.onnx.helper.make_node("Flatten", read, [flat], axis=1))
                matrix = self._constant(f"{layer.name}_w", weight.reshape(layer.out_channels, -1))
                kind = "QGemm"
                inputs = [flat, *source, matrix, *kernel, "", *result]
                more = {"transB": 1}
            else:
                kind = "QLinearConv"
                inputs = [*read, *source, self._constant(f"{layer.name}_w", weight), *kernel, *result]
                more = {"kernel_shape": layer.kernel, "strides": layer.stride, "pads": layer.padding}
                if isinstance(layer, DepthwiseConv):
                    more["group"] = layer.groups
        if kind != "QLinearConv":
            more["domain"] = "com.microsoft"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [layer.name], **more))
        return layer.name

    def _levels(self, name: str, scale: float, zero: np.generic) -> list[str]:
        """Append a scale and a zero point; their names."""
        return [self._constant(f"{name}_scale", np.float32(scale)), self._constant(f"{name}_zero", zero)]

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        """Append a constant; its name."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name
