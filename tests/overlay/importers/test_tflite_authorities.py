"""Public int8 networks (MLPerf Tiny), and what TFLite's reference kernels made of their inputs (`BITLOOM_DATA`)."""

import numpy as np
import pytest

from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.overlay.importers.imported import import_file
from tests.board_data import file as data

from .against import features
from .hardware import on_hardware

pytest.importorskip("onnx", reason="the extra import is not installed")

LOGITS_ZERO = 24
"""The zero point of ResNet-8's last map in its file, which holds values less that here."""


def layers(imported, images):
    """Golden's values behind each node, in the file's integers: name of a node -> (N, rows, columns, channels)."""
    trace = imported.model.trace(features(imported, images))
    names = [layer.name for layer in imported.model.network.layers]
    out = {}
    for built, section, held in zip(
        imported.emitted.built, imported.graph.sections, [*imported.choice.held.values()][1:], strict=True
    ):
        nodes = [name for name in built.nodes if not name.startswith("RESHAPE")]
        for node, layer in zip(nodes, built.layers[1:], strict=True):  # behind the sums
            out[node] = int(section.quantised.base) + (trace[names.index(layer)] - held.zero) // held.stride
    return out


def key(node):
    """A node as the recording names it: CONV_2D_8 is 08_CONV_2D."""
    kind, _, number = node.rpartition("_")
    return f"{int(number):02d}_{kind}"


@pytest.mark.slow  # networks of 10 to 28 layers, whose rules are worked out for every channel
@pytest.mark.parametrize(
    ("name", "recording", "nodes", "values"),
    [
        ("ad01_int8", "ad", 10, 3_344),
        ("kws_ref_model", "kws", 11, 144_152),
        ("vww_96_int8", "vww", 29, 463_620),
    ],
)
def test_every_value(name, recording, nodes, values):
    imported = import_file(data(f"mlperf_tiny/{name}.tflite"))
    recorded = np.load(data(f"mlperf_tiny/{recording}_reference.npz"))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    by_golden = layers(imported, recorded["x"][:2])
    compared = 0
    assert len(by_golden) == nodes
    for node, got in by_golden.items():
        for frame in (0, 1):
            wanted = recorded[f"frame{frame}_{key(node)}"]
            assert np.array_equal(got[frame].ravel(), wanted.ravel()), (node, frame)
            compared += wanted.size
    assert compared == values
    x = features(imported, recorded["x"])
    section = imported.graph.sections[-1]
    held = [*imported.choice.held.values()][-1]
    output = int(section.quantised.base) + (packed.forward(imported.model, x) - held.zero) // held.stride
    assert np.array_equal(output.reshape(recorded["logits"].shape), recorded["logits"])


@pytest.mark.slow  # works out 13 layers' rules, and classifies 761 images
def test_residual_network():
    """ResNet-8: every value of two frames, the scores of all that were recorded, and how many classes are right."""
    imported = import_file(data("mlperf_tiny/pretrainedResnet_quant.tflite"))
    recorded, images = np.load(data("mlperf_tiny/ic_reference.npz")), np.load(data("cifar10_test_first761.npz"))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    x = features(imported, images["x"].astype(np.int64) - 128)
    trace = dict(zip((layer.name for layer in imported.model.network.layers), packed.trace(imported.model, x[:2])))
    kinds = [*["CONV_2D", "CONV_2D", "CONV_2D", "ADD"] * 3, "AVERAGE_POOL_2D"]
    nodes = [*(f"{number:02d}_{kind}" for number, kind in enumerate(kinds)), "14_FULLY_CONNECTED"]
    sums = ("conv", "dense")
    compared = 0
    for (name, got), node in zip(((k, v) for k, v in trace.items() if not k.startswith(sums)), nodes, strict=True):
        for frame in (0, 1):
            wanted = recorded[f"frame{frame}_{node}"].astype(np.int64)
            away = wanted.ravel() - got[frame].ravel()  # the zero point, where the map holds values less that
            assert (away == away[0]).all(), (name, frame)
            compared += wanted.size
    assert compared == 2 * 114_762
    output = packed.forward(imported.model, x).reshape(len(x), -1) + LOGITS_ZERO
    assert np.array_equal(output[: len(recorded["logits"])], recorded["logits"])
    assert (output.argmax(axis=1) == images["y"]).sum() == 672


@pytest.mark.slow  # builds a simulation of 256 multipliers, and runs it for 115,037 cycles
def test_residual_network_on_hardware(tmp_path):
    """Scores are TFLite's, cycles the flow model's."""
    imported = import_file(data("mlperf_tiny/pretrainedResnet_quant.tflite"))
    recorded, images = np.load(data("mlperf_tiny/ic_reference.npz")), np.load(data("cifar10_test_first761.npz"))
    given = {"kfp": 16, "kgp": 16, "pfp": 16, "ol": 16}
    result = on_hardware(imported, images["x"][:2].astype(np.int64) - 128, tmp_path / "ic", **given)
    assert np.array_equal(result.outputs.reshape(2, -1) + LOGITS_ZERO, recorded["logits"][:2])
    npus = result.design.npus
    choices = CompileChoices(map_order="raster")
    flow = simulate(system(plan(imported.model, npus, choices), npus, stream_bits=result.design.stream_bits), 2)
    assert result.counters["cycles"] == flow.left[1] + 1
    assert flow.npus[0].beats == 52_394
    print(f"{result.counters['cycles']:,} cycles for 2 frames, {flow.cycles_per_frame:,} a frame in a stream")
