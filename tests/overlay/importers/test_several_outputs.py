"""Files with several outputs: heads of several sizes, maps that other layers read, outputs that are no maps; against
onnxruntime and TFLite's kernels, on the virtual board, and what is said where one output is needed."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bitloom import BitloomOverlay
from bitloom.golden.host import file as hosts
from bitloom.golden.layers.outputs import Outputs
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.evaluation.score import as_counted, class_rule, classifier
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify
from bitloom.overlay.virtual.board import activate
from tests import simulated
from tests.commands import call
from tests.errors import refusal, value_error

from .against import features
from .test_tflite import import_chain, values_of
from .tflite_files import DATA, Chain, ssd

onnx = pytest.importorskip("onnx", reason="the extra import is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra import is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


class Detector:
    """A file of three convolutions, each of which heads of boxes and of classes read, as an ONNX file with QDQ nodes.
    Scales are powers of two, so that floating point rounds nothing; each head's is ``scales`` times the one before."""

    def __init__(self, rng: np.random.Generator, scales: int = 1):
        self._rng = rng
        self._scales = scales
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        here = self._quantised("x", 1 / 16)
        boxes, classes = [], []
        self.maps = []
        for number, (inputs, outputs, stride) in enumerate([(3, 5, 1), (5, 6, 2), (6, 7, 2)]):
            here = self._conv(here, inputs, outputs, 3, stride)
            self.maps.append(here)
            for values, kernel, heads in ((4, 1, boxes), (3, 3, classes)):
                head = self._conv(here, outputs, 2 * values, kernel, 1, scales**number)
                moved = self.node("Transpose", head, perm=[0, 2, 3, 1])
                heads.append(self.node("Reshape", moved, self.constant(np.array([1, -1, values]))))
        self.node("Concat", *boxes, name="boxes", axis=1)
        self.node("Softmax", self.node("Concat", *classes, axis=1), name="classes", axis=2)

    def constant(self, values) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op: str, *inputs: str, name: str = "", more: Sequence[str] = (), **attributes) -> str:
        name = name or f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [name, *more], name=name, **attributes))
        return name

    def _quantised(self, tensor: str, scale: float) -> str:
        numbers = self.constant(np.float32(scale)), self.constant(np.int8(-4))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", tensor, *numbers), *numbers)

    def _conv(self, here: str, inputs: int, outputs: int, kernel: int, stride: int, more: int = 1) -> str:
        weights = self.constant(self._rng.integers(-127, 128, (outputs, inputs, kernel, kernel)).astype(np.int8))
        scale = self.constant(np.float32(1 / 256)), self.constant(np.int8(0))
        weight = self.node("DequantizeLinear", weights, *scale)
        scale = self.constant(np.float32(1 / 4096)), self.constant(np.int32(0))
        biases = self.constant(self._rng.integers(-2000, 2000, outputs).astype(np.int32))
        bias = self.node("DequantizeLinear", biases, *scale)
        sums = self.node("Conv", here, weight, bias, strides=[stride] * 2, pads=[kernel // 2] * 4)
        return self._quantised(sums, more / 16)

    def file(self, path, outputs):
        """Write the file with these outputs."""
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        source = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 6])
        graph = helper.make_graph(self._nodes, "detector", [source], values, self._constants)
        opset = [helper.make_opsetid("", 13)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
        return path


def by_onnxruntime(path, images) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # no 16-bit sums of pairs
    session = onnxruntime.InferenceSession(path, options)
    names = [output.name for output in session.get_outputs()]
    results = [session.run(None, {"x": image[None]}) for image in images]
    return {name: np.concatenate(values) for name, values in zip(names, zip(*results))}


def images_of(count: int) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 3, (count, 3, 8, 6)).astype(np.float32)


def closed(imported, images):
    return imported.host.closed(imported.model.forward(features(imported, images)))


def check_same(got, wanted):
    assert list(got) == list(wanted)
    for name, values in wanted.items():
        assert got[name].shape == values.shape
        assert len(np.unique(values)) > 10
        assert np.abs(got[name] - values).max() < 1e-5


def check_file(imported):
    """The host's file says all that the host does."""
    data = hosts.to_bytes(imported.host)
    network = imported.model.network
    assert hosts.to_bytes(hosts.from_bytes(data, imported.host.digest, network.input, network.output)) == data


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("scales", "outputs", "maps"),
    [
        (1, ["classes", "boxes"], 6),
        (2, ["boxes", "classes"], 6),
        (1, ["boxes", "MAP", "classes"], 7),
        (1, ["MAP", "LAST"], 2),
        (1, ["boxes"], 3),
        (1, ["classes"], 3),
    ],
    ids=["heads", "heads of several scales", "a map between", "maps alone", "boxes of three maps", "softmax of three"],
)
def test_heads_of_several_sizes(tmp_path, scales, outputs, maps):
    detector = Detector(np.random.default_rng(1), scales)
    named = {"MAP": detector.maps[1], "LAST": detector.maps[2]}
    path = detector.file(tmp_path / "d.onnx", [named.get(name, name) for name in outputs])
    imported = import_file(path)
    verify(imported, 2)
    last = imported.model.network.layers[-1]
    assert isinstance(last, Outputs)
    assert len(last.inputs) == maps
    got = closed(imported, images_of(5))
    check_same({outputs[0]: got} if len(outputs) == 1 else got, by_onnxruntime(path, images_of(5)))
    check_file(imported)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Transpose", {"perm": [0, 2, 3, 1]}), ("Mul", {}), ("Sigmoid", {}), ("Softmax", {"axis": 1})],
)
def test_what_the_host_makes_of_a_map_that_others_read(tmp_path, op, attributes):
    """The scale of the map counts, too, where the map goes on to a convolution, and where it leaves itself."""
    detector = Detector(np.random.default_rng(1))
    two = [detector.constant(np.float32(2))] if op == "Mul" else []
    for number, tensor in enumerate(detector.maps[1:]):
        detector.node(op, tensor, *two, name=f"y{number}", **attributes)
    path = detector.file(tmp_path / "d.onnx", ["y0", "boxes", "y1", detector.maps[2]])
    imported = import_file(path)
    verify(imported, 2)
    check_same(closed(imported, images_of(3)), by_onnxruntime(path, images_of(3)))
    check_file(imported)


@pytest.mark.sample(3)
@pytest.mark.parametrize("heads", [1, 2], ids=["one map", "two maps"])
@pytest.mark.parametrize("others", [[], ["boxes"]], ids=["alone", "beside boxes"])
@pytest.mark.parametrize(
    ("op", "axis", "behind"),
    [
        ("Softmax", 1, None),
        ("Softmax", 3, None),
        ("LogSoftmax", 1, ("Transpose", {"perm": [0, 2, 3, 1]})),
        ("Softmax", 1, ("Transpose", {"perm": [0, 3, 1, 2]})),
        ("Softmax", 2, ("Flatten", {})),
    ],
)
def test_softmax_has_an_axis(tmp_path, op, axis, behind, heads, others):
    """Of a map, and of two maps that the host puts side by side; layouts behind it move the axis, or hide it."""
    detector = Detector(np.random.default_rng(1))
    here = detector.maps[1]
    if heads > 1:
        here = detector.node("Concat", here, detector._conv(here, 6, 2, 1, 1), axis=1)
    here = detector.node(op, here, axis=axis, name="" if behind else "y")
    if behind:
        detector.node(behind[0], here, name="y", **behind[1])
    path = detector.file(tmp_path / "d.onnx", ["y", *others])
    imported = import_file(path)
    verify(imported, 2)
    got = closed(imported, images_of(2))
    check_same(got if others else {"y": got}, by_onnxruntime(path, images_of(2)))
    check_file(imported)


@pytest.mark.parametrize(
    ("output", "rule"),
    [
        ("turned", "what the network ends in must be over one axis of its output, got values in another order"),
        ("cut", "what it makes must leave whole, got some values, by cut"),
    ],
)
def test_softmax_whose_classes_have_no_axis(tmp_path, output, rule):
    detector = Detector(np.random.default_rng(1))
    softmax = detector.node("Softmax", detector.maps[1], name="s", axis=1)
    rows = detector.node("Reshape", softmax, detector.constant(np.array([1, 2, 3, 4, 3])))
    numbers = (detector.constant(np.array([number])) for number in (0, 2, 1))
    detector.node("Transpose", rows, name="turned", perm=[0, 2, 3, 1, 4])
    detector.node("Slice", softmax, *numbers, name="cut")
    with refusal(f"s (Softmax): {rule}"):
        import_file(detector.file(tmp_path / "d.onnx", [output, "boxes"]))


@pytest.mark.parametrize("axes", [(1, 2), (2, 1)])
def test_softmax_over_two_axes(tmp_path, axes):
    """One of two classes, and one of three."""
    detector = Detector(np.random.default_rng(1))
    here = detector.node("Reshape", detector.maps[1], detector.constant(np.array([1, 2, 3, 4, 3])))
    for number, axis in enumerate(axes):
        here = detector.node("Softmax", here, name=f"s{number}", axis=axis)
    rule = "what the network ends in must be over one axis of its output, got values in another order"
    with refusal(f"s1 (Softmax): {rule}"):
        import_file(detector.file(tmp_path / "d.onnx", [here, "boxes"]))


def test_softmax_that_leaves_twice(tmp_path):
    """As it is, and in another order."""
    detector = Detector(np.random.default_rng(1))
    detector.node(
        "Transpose", detector.node("Softmax", detector.maps[1], name="s", axis=1), name="t", perm=[0, 2, 3, 1]
    )
    path = detector.file(tmp_path / "d.onnx", ["t", "s", detector.maps[1]])
    imported = import_file(path)
    verify(imported, 2)
    check_same(closed(imported, images_of(2)), by_onnxruntime(path, images_of(2)))


def test_the_check_of_an_import_looks_at_what_ends_it(tmp_path):
    detector = Detector(np.random.default_rng(1))
    imported = import_file(detector.file(tmp_path / "d.onnx", ["classes", "boxes"]))
    classes, boxes = imported.host.outputs
    wrong = replace(imported, host=replace(imported.host, outputs=(replace(classes, apart=128), boxes)))
    with pytest.raises(ValueError, match=r"^classes: the rewriting must equal the operations"):
        verify(wrong, 1)


def test_names_that_are_no_text(tmp_path):
    """A file's names may be anything; two long ones become the same, and are told apart."""
    names = ["bo\nxes", "x" * 200 + "1", "x" * 200 + "2"]
    detector = Detector(np.random.default_rng(1))
    for name, tensor in zip(names, ("boxes", *detector.maps[1:])):
        detector.node("Identity", tensor, name=name)
    imported = import_file(detector.file(tmp_path / "d.onnx", names))
    first, second, third = (output.name for output in imported.host.outputs)
    assert first == "'bo\\nxes'"
    assert third == f"{second} (2)"
    check_file(imported)


@pytest.mark.slow
def test_from_file_to_driver(tmp_path):
    """The virtual board computes all heads, and the driver gives each by its name."""
    detector = Detector(np.random.default_rng(2))
    path = detector.file(tmp_path / "d.onnx", ["classes", detector.maps[2], "boxes"])
    imported = import_file(path)
    chosen = chosen_design(imported.model, Wanted(folding={"kfp": 4, "kgp": 4, "ol": 2}))
    bit, manifest = simulated.overlay(chosen.design("detector", [imported.model]))
    compile_model(imported.model, manifest, chosen.choices, host=imported.host).save(tmp_path / "d.npz")
    images = images_of(3)
    board = activate()
    try:
        with BitloomOverlay(str(bit)) as overlay:
            overlay.load(tmp_path / "d.npz")
            got = overlay.scores(images)
            names = f"classes, {detector.maps[2]}, boxes"
            with value_error(f"classes are of networks with one output, got 3: {names}"):
                overlay.classify(images)
    finally:
        board.close()
    check_same(got, by_onnxruntime(path, images))


def test_evaluation_needs_classes(tmp_path):
    path = Detector(np.random.default_rng(1)).file(tmp_path / "d.onnx", ["classes", "boxes"])
    imported = import_file(path, name="d")
    with value_error("d: classes are of networks with one output, got 2: classes, boxes"):
        class_rule(imported.model.network, host=imported.host)
    names = ", ".join(imported.model.network.layers[-1].inputs)
    with value_error(f"d: classes are of networks with one output, got 6: {names}"):
        class_rule(imported.model.network)
    rule = "maps that are sent as several outputs need the integer engine, got --engine binary"
    with pytest.raises(ImportRefused, match=rule):
        import_file(path, engine="binary")


def test_scores_that_the_host_joins_tell_a_class(tmp_path):
    """Two dense heads whose concatenation is the file's one output, as six classes."""
    detector = Detector(np.random.default_rng(1))
    heads = []
    for count in (4, 2):
        weights = np.random.default_rng(count).integers(-127, 128, (count, 28)).astype(np.int8)
        numbers = detector.constant(np.float32(1 / 256)), detector.constant(np.int8(0))
        weight = detector.node("DequantizeLinear", detector.constant(weights), *numbers)
        heads.append(detector.node("Gemm", detector.node("Flatten", detector.maps[2]), weight, transB=1))
    detector.node("Concat", *heads, name="scores", axis=1)
    imported = import_file(detector.file(tmp_path / "d.onnx", ["scores"]), name="d").with_classes("abcdef")
    network = imported.model.network
    rule = class_rule(network, host=imported.host)
    assert rule == "scores"
    images = images_of(64)
    outputs = imported.model.forward(features(imported, images))
    wanted = by_onnxruntime(tmp_path / "d.onnx", images)["scores"].argmax(axis=1)
    assert len(np.unique(wanted)) > 3
    assert np.array_equal(classifier(rule, imported.host)(outputs), wanted)
    assert as_counted(network, rule, imported.host).classes == tuple("abcdef")
    boxes = import_file(detector.file(tmp_path / "boxes.onnx", ["boxes"]), name="boxes")
    with value_error("boxes: the output must be 1 x 1 x classes to tell a class, got shape (128, 4)"):
        class_rule(boxes.model.network, host=boxes.host)
    outputs = boxes.model.forward(features(boxes, images[:1]))
    with value_error("the output must be 1 x 1 x classes to tell a class, got shape (128, 4)"):
        boxes.host.classes(outputs)


def test_labels_of_a_detector_are_no_names_of_its_values(tmp_path):
    path = Detector(np.random.default_rng(1)).file(tmp_path / "d.onnx", ["classes", "boxes"])
    model = onnx.load(path)
    values = 896  # of both outputs
    helper.set_model_props(model, {"labels": "\n".join(f"class {n}" for n in range(values))})
    onnx.save(model, path)
    answer = call("import", path, "--out", tmp_path / "d.npz", "--check", "0", "--json")
    facts = json.loads(answer.stdout)
    assert (facts["classes"], facts["named"]) == ([], "")


def test_outputs_of_tflite():
    """A map that leaves and goes on, one behind softmax, and one of the same map with other values."""
    rng = np.random.default_rng(4)
    chain = Chain((6, 5, 2), 0.02, 4).conv(rng, 4, (3, 3), (0.03, -9), activation="RELU")
    middle = chain.here
    chain.conv(rng, 3, (1, 1), (0.05, 7), strides=(2, 2))
    head = chain.here
    chain.here = middle
    chain.mean((0.02, -11)).dense(rng, 5, (0.06, 3))
    chain.softmax()
    chain.outputs = [head, chain.here, middle]
    imported = import_chain(chain)
    verify(imported, 3)
    images = rng.integers(-128, 128, (6, 6, 5, 2)).astype(np.int8)
    got = closed(imported, images)
    assert list(got) == ["t1", "t4", "t0"]
    for number, image in enumerate(images):
        values = values_of(imported.source, image)
        for name in ("t1", "t0"):  # integers, as the file gives them
            assert np.array_equal(got[name][number], values[name][0])
        scores = (values["t3"][0].astype(float) - 3) * 0.06
        powers = np.exp(scores - scores.max())
        assert np.abs(got["t4"][number] - powers / powers.sum()).max() < 1e-6


def test_a_detector_of_keras():
    """Against TFLite's reference kernels (keras_heads.py): integers as the file has them, and what closes an output as
    real numbers, which the file rounds to 256 levels."""
    imported = import_file(DATA / "heads.tflite")
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    with np.load(DATA / "heads.npz") as recorded:
        wanted = {name: recorded[name] for name in recorded.files}
    got = closed(imported, wanted.pop("x"))
    assert got.keys() == wanted.keys()
    for name, shape in {"1": (90, 4), "3": (6, 6, 12)}.items():
        values = wanted[f"StatefulPartitionedCall_1:{name}"]
        assert values.shape == (3, *shape)
        assert len(np.unique(values)) > 100
        assert np.array_equal(got[f"StatefulPartitionedCall_1:{name}"], values)
    for name, shape in {"0": (90, 3), "2": (5,)}.items():
        values = (wanted[f"StatefulPartitionedCall_1:{name}"].astype(float) + 128) / 256
        assert values.shape == (3, *shape)
        assert np.abs(got[f"StatefulPartitionedCall_1:{name}"] - values).max() < 0.51 / 256


def test_a_detector_with_boxes():
    """The host decodes boxes at the end: against TFLite's reference kernels, those of the whole file."""
    imported = import_file(DATA / "ssd.tflite")
    assert [layer.kind for layer in imported.model.network.layers].count("lookup") == 2  # the scores are the file's own
    with np.load(DATA / "ssd.npz") as recorded:
        wanted = {name: recorded[name] for name in recorded.files}
    got = closed(imported, wanted.pop("x"))
    shapes = {"corners": (12, 30, 4), "classes": (12, 30), "scores": (12, 30), "count": (12,)}
    assert {name: values.shape for name, values in got.items()} == shapes
    assert imported.host.shapes == {"corners": (30, 4), "classes": (30,), "scores": (30,), "count": ()}
    assert len(np.unique(wanted["count"])) > 2
    for name, values in wanted.items():
        for image, count in enumerate(wanted["count"].astype(int)):
            there = slice(None) if name == "count" else slice(count)  # the kernel leaves all others as they were
            assert np.array_equal(np.atleast_1d(got[name][image])[there], np.atleast_1d(values[image])[there])
    verify(imported, 2)
    check_file(imported)


@pytest.mark.parametrize("change", [{"direct": False}, {"closing": "SOFTMAX"}, {"use_regular_nms": True}], ids=str)
def test_other_detectors(change):
    """Anchors as integers, a softmax, whose real numbers are the host's, and boxes that hide their own class alone."""
    imported = import_chain(ssd(**change))
    verify(imported, 2)
    check_file(imported)
    images = np.random.default_rng(3).integers(-128, 128, (3, 8, 8, 3)).astype(np.int8)
    got = closed(imported, images)
    assert got["count"].min() > 2
    detections = imported.host.detections
    assert detections.by_class == ("use_regular_nms" in change)
    integers = imported.model.forward(imported.host.to_input(images, (8, 8, 3)))
    boxes, scores, anchors = (output.closed(integers) for output in imported.host.outputs)
    for name, values in detections.run(boxes, scores, anchors.reshape(3, -1)).items():
        assert np.array_equal(values, got[name])


def outside(chain):
    """One of the four results is no output."""
    chain.outputs = chain.outputs[:3]
    return chain


def of_integers(chain):
    """Boxes of type INT8."""
    kind, (boxes, *others), *more = chain.operators[-1]
    read = next(inputs[0] for _, inputs, results, *_ in chain.operators if results == (boxes,))
    chain.operators[-1] = (kind, (read, *others), *more)
    return chain


def without_options(chain):
    chain.operators[-1] = (*chain.operators[-1][:4], {})
    return chain


OP = "CUSTOM TFLite_Detection_PostProcess"
INSIDE = f"{OP}_15 ({OP}): this operator of TFLite is not imported; it must be the last one, with three inputs, and "
NUMBERS = "could not convert string to float: 'ten'"
CLASSES = (
    "boxes, scores and anchors must be (n, 4), (n, 5) or one class more, and (n, 4), got (40, 4), (40, 3), (40, 4)"
)
NO_DETECTIONS = {
    "a result that is no output": (lambda: outside(ssd()), f"{INSIDE}all its four results outputs of the file"),
    "integers": (
        lambda: of_integers(ssd()),
        f"{OP}_15: boxes, scores and anchors must be of type FLOAT32, got INT8, FLOAT32, FLOAT32",
    ),
    "other scales": (
        lambda: ssd(y_scale=0.0),
        f"{OP}_15: detections: scales must be four finite numbers > 0, got (0.0, 10.0, 5.0, 5.0)",
    ),
    "no options": (
        lambda: without_options(ssd()),
        f"must be a whole TFLite file, got: {OP} with 0 bytes of options",
    ),
    "text": (
        lambda: ssd(y_scale="ten"),
        f"must be a whole TFLite file, got: {OP} with options that are no map of numbers: {NUMBERS}",
    ),
    "other classes": (
        lambda: ssd(num_classes=5),
        f"what the host computes must be written to a file: detections: {CLASSES}",
    ),
}


@pytest.mark.parametrize("name", NO_DETECTIONS)
def test_detections_that_are_refused(name):
    make, line = NO_DETECTIONS[name]
    with pytest.raises(ValueError, match=r".") as refused:
        import_chain(make())
    assert str(refused.value) == line


@pytest.mark.parametrize("alike", [False, True], ids=["of one image", "of all images"])
def test_an_output_that_is_aconstant(tmp_path, alike):
    """Such as the anchors of a detector: the host has it."""
    detector = Detector(np.random.default_rng(1))
    anchors = np.random.default_rng(2).random((4, 2) if alike else (1, 4, 2)).astype(np.float32)
    detector.node("Identity", detector.constant(anchors), name="anchors")
    path = detector.file(tmp_path / "d.onnx", ["anchors", detector.maps[1], "boxes"])
    imported = import_file(path)
    got, wanted = closed(imported, images_of(2)), by_onnxruntime(path, images_of(2))
    assert np.array_equal(got["anchors"], np.broadcast_to(anchors, (2, 4, 2)))
    assert list(got) == list(wanted)
    assert np.abs(got["boxes"] - wanted["boxes"]).max() < 1e-5
    check_file(imported)


REFUSED = {
    "sigmoid in front of a last scale": (
        lambda d: d.node("Mul", d.node("Sigmoid", "boxes"), d.constant(np.float32(2)), name="y"),
        ["y", "classes"],
        "n62 (Sigmoid): at a network's ends the host computes lines and clips alone; put a quantiser behind it",
    ),
    "the numbers of the largest scores": (
        lambda d: d.node("TopK", "boxes", d.constant(np.array([3])), name="y", more=["i"]),
        ["i", "y"],
        "y (TopK): it must be at the file's one output, got 2 outputs; leave it out",
    ),
    "a second output": (
        lambda d: d.node(
            "BatchNormalization", d.maps[2], *(d.constant(np.ones(7, np.float32)),) * 4, name="y", more=["i"]
        ),
        ["y", "i"],
        "the output must be a node's first one, got i, which is not computed",
    ),
    "the class beside boxes": (
        lambda d: d.node("ArgMax", d.maps[2], name="y", axis=1),
        ["y", "boxes"],
        "y (ArgMax): it must be at the file's one output, got 2 outputs; leave it out",
    ),
    "a constant that is infinite": (
        lambda d: d.node("Identity", d.constant(np.float32([[1, np.inf]])), name="y"),
        ["y", "boxes"],
        "output y: a constant must have finite numbers, got inf",
    ),
    "a constant of no values": (
        lambda d: d.node("Identity", d.constant(np.zeros((1, 0, 4), np.float32)), name="y"),
        ["y", "boxes"],
        "output y: a constant must have finite numbers, got none",
    ),
}


@pytest.mark.parametrize(("change", "outputs", "line"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, change, outputs, line):
    detector = Detector(np.random.default_rng(1))
    change(detector)
    with refusal(line):
        import_file(detector.file(tmp_path / "d.onnx", outputs))


NUMBERS = np.float32([1, 2, 3, 4])
BEHIND = {
    "a scale of each coordinate": (lambda d: d.node("Mul", "boxes", d.constant(NUMBERS), name="y"), "y (Mul)"),
    "some boxes": (
        lambda d: d.node("Slice", "boxes", *(d.constant(np.array([k])) for k in (0, 100, 1)), name="y"),
        "y (Slice)",
    ),
    "the same again": (lambda d: d.node("Identity", "boxes", name="y"), "y (Identity)"),
}


@pytest.mark.parametrize("name", BEHIND)
def test_what_hinders_a_last_concatenation_is_named(tmp_path, name):
    change, hindrance = BEHIND[name]
    detector = Detector(np.random.default_rng(1))
    change(detector)
    outputs = ["y", "boxes"] if name == "the same again" else ["y", "classes"]
    rule = "maps that are concatenated must have one height and width, got 8 x 6 and 4 x 3 and 2 x 2"
    follows = f"the host joins others at the network's end alone, and {hindrance} follows"
    with refusal(f"boxes (Concat): {rule}; {follows}"):
        import_file(detector.file(tmp_path / "d.onnx", outputs))


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", [(), (1, 128, 1), (1, 1, 4)])
def test_one_number_in_any_shape_behind_a_last_concatenation(tmp_path, shape):
    detector = Detector(np.random.default_rng(1))
    detector.node("Mul", "boxes", detector.constant(np.full(shape, 2, np.float32)), name="y")
    path = detector.file(tmp_path / "d.onnx", ["y", "classes"])
    check_same(closed(import_file(path), images_of(2)), by_onnxruntime(path, images_of(2)))


def test_what_an_import_makes_can_be_read(tmp_path):
    """64 clips and scales behind a map, to which the map's own scale is added."""
    detector = Detector(np.random.default_rng(1))
    here = detector.maps[1]
    for number in range(32):
        ends = (detector.constant(np.float32(end)) for end in (number - 100, 200 - number))
        last = "y" if number == 31 else ""
        here = detector.node("Clip", here, *ends)
        here = detector.node("Mul", here, detector.constant(np.float32(1 + number / 64)), name=last)
    line = "what the host computes must be written to a file: outputs.chain: must have at most 64 links, got 65"
    with refusal(line):
        import_file(detector.file(tmp_path / "d.onnx", ["y", "boxes"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"anchors": 0, "boxes": 2}, "detections.anchors must be an output that is constant, with sizes >= 0"),
        ({"names": ["a", "b", "c", ""]}, "outputs must have printable names of 1 to 256 characters, got ''"),
        ({"most": 0}, "detections: most must be an integer of 1..65536, got 0"),
        ({"colour": 1}, "a field is missing or wrong: TypeError "),
        ({"boxes": 1, "scores": 0}, "detections: boxes, scores and anchors must be "),
    ],
)
def test_a_damaged_host_file_of_a_detector(change, message):
    imported = import_file(DATA / "ssd.tflite")
    network = imported.model.network
    data = json.loads(hosts.to_bytes(imported.host))
    data["detections"].update(change)
    with pytest.raises(ValueError, match=r".") as refused:
        hosts.from_bytes(json.dumps(data).encode(), imported.host.digest, network.input, network.output)
    assert str(refused.value).startswith(message)
