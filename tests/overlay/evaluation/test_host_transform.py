"""Imported networks: pixels become numbers and numbers become integers; scores tell the class where outputs don't."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitloom.golden import file
from bitloom.golden.encoding import signed
from bitloom.golden.file import model_digest
from bitloom.golden.host import file as hosts
from bitloom.golden.host.host import Host, InputIntegers
from bitloom.golden.network import Model
from bitloom.golden.transform import Transform
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.evaluation.data import labelled_images
from bitloom.overlay.evaluation.host_transform import HostTransform, fitting_transforms, transform_of
from bitloom.overlay.evaluation.labelled import checked_labels
from bitloom.overlay.evaluation.score import as_counted, class_rule, classifier, evaluate
from bitloom.overlay.importers.imported import import_file
from tests import board_data
from tests.commands import call
from tests.errors import value_error
from tests.host_outputs import scores, with_scores

from .networks import corners


def host(**changes) -> Host:
    """Of `corners`: numbers from 0 to 1 become -1 below a half, else +1; scores are the outputs."""
    ones = np.ones(3)
    front = (("line", np.array([2.0]), np.array([-1.0])),)
    boundaries = {"boundaries": np.array([[0.0]]), "reached": np.array([True]), "first": -1, "stride": 2}
    fields = {
        "digest": model_digest(corners()),
        "shape": (1, 2, 2),
        "order": np.arange(4),
        "front": front,
        **boundaries,
    }
    fields["outputs"] = scores((("line", ones, 0 * ones),), np.arange(3))
    return Host(**{**fields, **changes})


NUMBERS = {
    "host": lambda p: p,
    "host:1/255": lambda p: p / 255,
    "host:2/255:-1": lambda p: 2 * p / 255 - 1,
    "host:0.5": lambda p: p / 2,
    "host:-3:0.25": lambda p: 0.25 - 3 * p,
    "host:1:1/2": lambda p: p + 0.5,
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_a_pixel_stands_for_a_number(text, number):
    """Rounded once: so it reaches the same boundaries as a pixel that was divided by 255."""
    pixels = np.arange(256).reshape(64, 2, 2, 1)
    limits = np.sort(np.array([number(p) for p in range(256)], float))[None]
    plain = host(front=(), boundaries=limits, reached=np.ones(256, bool), first=0, stride=1)
    values = transform_of(text, plain)(pixels)
    assert values.shape == (64, 2, 2, 1)
    assert values.ravel().tolist() == [int((number(p) >= limits[0]).sum()) for p in range(256)]
    assert str(transform_of(text, plain)) == text


@pytest.mark.parametrize(
    "text",
    ["host:", "host:x", "host:1/0", "host:1/255:", "host:1:2:3", "host:1.5/2", "host:1e9", "host:nan", "host:\u0661"],
)
def test_what_is_no_transform(text):
    with value_error(f"transform: must be host, host:SCALE or host:SCALE:OFFSET, numbers or fractions, got {text!r}"):
        transform_of(text, host())


def wide_corners() -> Model:
    """`corners` with an input of signed 8 bit."""
    model = corners()
    source = replace(model.network.input, encoding=signed(8))
    return Model(replace(model.network, name="wide", input=source), model.arrays)


def integers(scale: float, zero: int) -> Host:
    """Of an int8 file: what comes in is what the network reads."""
    input_integers = InputIntegers(low=-128, high=127, scale=scale, zero=zero)
    return host(front=(), boundaries=None, reached=None, first=0, stride=1, integers=input_integers)


SCALES = [
    (1.0, -128, "host", [-128, -127, -1, 127]),
    (1 / 255, -128, "host:1/255", [-128, -127, -1, 127]),
    (2.0, 0, "host", [0, 1, 64, 127]),  # halves away from zero
    (2.0, 0, "host:-1", [0, -1, -64, -128]),
    (1.0, 0, "host:1:-128", [-128, -127, -1, 127]),
    (1.0, -128, "host:16:-128", [-128, -128, 127, 127]),  # saturates, as TFLite's QUANTIZE
]


@pytest.mark.parametrize(("scale", "zero", "transform", "wanted"), SCALES)
def test_integers_of_a_file_follow_by_scale_and_zero_point(scale, zero, transform, wanted):
    """So one text means the same for files of every format; the numbers are those of TFLite's QUANTIZE."""
    pixels = np.array([0, 1, 127, 255]).reshape(1, 2, 2, 1)
    assert HostTransform(transform, integers(scale, zero))(pixels).ravel().tolist() == wanted


FITTING = [
    (integers(1.0, -128), ("host",)),
    (integers(1.0, 0), ("host:1:-128",)),
    (integers(1 / 255, -128), ("host:1/255",)),
    (integers(2 / 255, -1), ("host:2/255:-1",)),
    (integers(0.39, 89), ()),
    (host(), ()),  # a single boundary has no range
    (host(boundaries=np.arange(1.0, 16)[None] / 8 - 1, reached=np.ones(15, bool)), ("host:1/255",)),
]


@pytest.mark.parametrize(("host_part", "wanted"), FITTING)
def test_the_transforms_that_fit(host_part, wanted):
    assert fitting_transforms(host_part) == wanted


def test_floating_point_is_no_image_of_integers():
    """It would be rounded: TFLite's interpreter refuses it too."""
    with value_error("images must be integers of -128..127, as the file's input, got dtype float64"):
        integers(1 / 255, -128).to_input(np.zeros((1, 1, 2, 2)), (2, 2, 1))


def test_masked_images_are_refused():
    """Code that computes would take the values below the mask."""
    masked = np.ma.masked_greater(np.array([0.0, 1.0, 2.0, 300.0]).reshape(1, 2, 2, 1), 255)
    rule = "values must not be masked, got a masked array: say its values with filled()"
    for host_part in (host(), integers(1.0, -128)):
        with value_error(f"images: {rule}"):
            HostTransform("host", host_part)(masked)
        with value_error(f"images: {rule}"):
            host_part.to_input(masked.reshape(1, 1, 2, 2), (2, 2, 1))
    with value_error(f"data: labels: {rule}"):
        checked_labels("data", np.ma.array([1, 2]), 2, corners().network)


def test_the_file_keeps_what_integers_stand_for(tmp_path):
    host_part = host(integers=integers(0.5, 3).integers)
    hosts.save(host_part, tmp_path / "h.json")
    assert hosts.load(tmp_path / "h.json", corners()).integers == host_part.integers
    data = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))
    limits = f"input.integers must have {-1 << 31} <= low <= zero <= high <= {1 << 31} and low < high"
    for change, rule in (
        ({"zero": 128}, f"{limits}, got -128, 128, 127"),
        ({"scale": 0}, "input.integers must have a finite scale above 0, got 0.0"),
    ):
        changed = {**data, "input": {**data["input"], "integers": {**data["input"]["integers"], **change}}}
        (tmp_path / "h.json").write_text(json.dumps(changed), encoding="utf-8")
        with value_error(f"{tmp_path / 'h.json'}: {rule}"):
            hosts.load(tmp_path / "h.json", corners())
    (tmp_path / "h.json").write_text(json.dumps({**data, "version": 1}), encoding="utf-8")
    rule = f"must be a bitloom host file of version {hosts.VERSION}, got version 1: import the network again"
    with value_error(f"{tmp_path / 'h.json'}: {rule}"):
        hosts.load(tmp_path / "h.json", corners())


WARNINGS = {
    "host": [],
    "host:1/255": ["images give 0..1, and the input takes 0..255: 0.4% of its range is used"],
    "host:1:-128": ["images give -128..127, and the input takes 0..255: 50.0% of them are clipped"],
    "none": [],
}


@pytest.mark.parametrize(("transform", "warnings"), WARNINGS.items())
def test_a_transform_that_is_probably_wrong(transform, warnings, tmp_path):
    """The command says so, and what fits."""
    model, data = tmp_path / "wide.npz", tmp_path / "data.npz"
    wide = wide_corners()
    file.save(wide, model)
    hosts.save(replace(integers(1.0, -128), digest=model_digest(wide)), hosts.path_of(model))
    images = np.array([[-128, 127, 0, 1], [-3, -2, -1, 5]], np.int8)
    np.savez(data, x=images if transform == "none" else images.astype(int) + 128, y=[0, 1])
    done = call("evaluate", model, data, "--transform", transform, "--json")
    advice = "; host fits pixels of 0..255"
    said = [line for line in done.stderr.splitlines() if "warning" in line]
    assert said == [f"bitloom: warning: {data}: with transform {transform} {text}{advice}" for text in warnings]
    assert str(call("evaluate", model, data).exception) == (
        "bitloom: wide: --transform must say which real number a pixel stands for (the input takes 0..255: host fits "
        "pixels of 0..255), got none"
    )


@pytest.mark.slow  # imports a network of 13 layers, and classifies 761 images
def test_resnet8_is_right_on_672_of_761_images(tmp_path: Path) -> None:
    """The network of MLPerf Tiny was trained on pixels of 0..255; its integers are 128 less."""
    source = board_data.file("mlperf_tiny/pretrainedResnet_quant.tflite")
    imported = import_file(source)
    network = imported.model.network
    rule = class_rule(imported.model.network, host=imported.host)
    images = labelled_images(str(board_data.file("cifar10_test_first761.npz")), network, real=True)
    assert fitting_transforms(imported.host) == ("host",)
    for text, right, doubts in (
        ("host", 672, []),
        ("host:1/255", 87, ["images give 0..1, and the input takes 0..255: 0.4% of its range is used"]),
    ):
        score = evaluate(imported.model, images, transform=transform_of(text, imported.host), classify=classifier(rule))
        assert (score.right, score.use.doubts) == (right, doubts)


def test_a_host_file_is_needed():
    assert transform_of("minus:1", None) == Transform("minus:1")
    with value_error("transform host: needs the network's host file, NAME.host.json beside the model, got none"):
        transform_of("host", None)
    with value_error("tiny: class rule scores needs the network's host file, got none"):
        class_rule(corners().network, "scores")


def test_scores_tell_the_class_where_they_have_another_order():
    network = corners().network
    assert class_rule(network, host=host()) == "largest"
    turned = with_scores(host(), chain=(("line", np.array([1.0, -1.0, 1.0]), np.zeros(3)),))
    assert class_rule(network, host=turned) == "scores"
    outputs = np.array([[4, 0, 2], [0, -4, 2], [0, 1, 0]]).reshape(3, 1, 1, 3)
    assert classifier("scores", turned)(outputs).tolist() == [0, 1, 0]
    assert classifier("largest", turned)(outputs).tolist() == [0, 2, 1]
    swapped = with_scores(host(), order=np.array([2, 0, 1]))  # score 0 is output 2
    assert classifier(class_rule(network, host=swapped), swapped)(outputs).tolist() == [1, 0, 2]


def test_classes_are_named_in_the_order_of_the_scores(tmp_path):
    """Where the file has them in another order than the network: rows, and folders by the classes' names."""
    names = ("one", "two", "zero")  # of the outputs
    model = Model(replace(corners().network, classes=names), corners().arrays)
    swapped = with_scores(host(digest=model_digest(model)), order=np.array([2, 0, 1]))
    file.save(model, tmp_path / "tiny.npz")
    hosts.save(swapped, hosts.path_of(tmp_path / "tiny.npz"))
    numbers = np.array([[0.9, 0.6, 0.7, 0.5], [0.9, 0.6, 0.2, 0.1], [0.9, 0.0, 0.7, 0.49]])  # outputs 0, 1, 2
    np.savez(tmp_path / "data.npz", x=numbers, y=[1, 2, 0])
    for name, pixels in zip(names, np.uint8(np.ceil(numbers * 255)).reshape(3, 2, 2)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        Image.fromarray(pixels).save(tmp_path / "pictures" / name / "a.png")
    for data, transform in (("data.npz", "host"), ("pictures", "host:1/255")):
        options = [str(tmp_path / "tiny.npz"), str(tmp_path / data), "--json", "--transform", transform]
        facts = json.loads(call("evaluate", *options).stdout)
        assert (facts["class_rule"], facts["right"]) == ("scores", 3)
        assert facts["classes"] == ["zero", "one", "two"]
        assert as_counted(model.network, "largest", swapped).classes == names


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -np.inf])
def test_images_and_scores_must_be_finite(pixel):
    with value_error(f"images must give finite numbers, got {pixel}"):
        HostTransform("host", host())(np.full((1, 2, 2, 1), pixel))
    turned = with_scores(host(), chain=(("line", np.full(3, 1e308), np.zeros(3)),))
    with value_error("the host's scores must be finite, got inf"):
        classifier("scores", turned)(np.full((1, 1, 1, 3), 9))


SHAPE = "input.shape must have 4 values, and at most 8 axes, got"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"shape": [-1, -4]}, f"{SHAPE} (-1, -4)"),
        ({"shape": [4, (1 << 62) + 1]}, f"{SHAPE} (4, 4611686018427387905)"),
        ({"shape": [1] * 8 + [4]}, f"{SHAPE} (1, 1, 1, 1, 1, 1, 1, 1, 4)"),
        ({"first": 1e30, "boundaries": None}, f"input.first must be -2147483648..2147483648, got {int(1e30)}"),
    ],
)
def test_a_strangers_host_file(change, rule, tmp_path):
    hosts.save(host(), tmp_path / "h.json")
    data = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))
    data["input"].update(change)
    (tmp_path / "h.json").write_text(json.dumps(data), encoding="utf-8")
    with value_error(f"{tmp_path / 'h.json'}: {rule}"):
        hosts.load(tmp_path / "h.json", corners())


def test_the_command(tmp_path: Path) -> None:
    """Numbers in floating point, and the host file where it lies beside the model or elsewhere."""
    model, data = tmp_path / "tiny.npz", tmp_path / "data.npz"
    file.save(corners(), model)
    numbers = np.array([[0.9, 0.6, 0.7, 0.5], [0.9, 0.6, 0.2, 0.1], [0.9, 0.0, 0.7, 0.49]])
    np.savez(data, x=numbers, y=[0, 1, 2])

    evaluated = partial(call, "evaluate", model, data, "--json")
    refused = f"bitloom: {data}: x: must be an array of truth values or integers, got dtype '<f8'"
    assert str(evaluated("--transform", "threshold:1").exception) == refused
    hosts.save(host(), hosts.path_of(model))
    assert str(evaluated().exception) == (
        "bitloom: tiny: --transform must say which real number a pixel stands for (host: the pixel itself; "
        "host:1/255: pixels of 0..255 for 0..1), got none"
    )
    facts = json.loads(evaluated("--transform", "host").stdout)
    assert (facts["right"], facts["transform"], facts["class_rule"]) == (3, "host", "largest")
    elsewhere = tmp_path / "other.json"
    hosts.path_of(model).rename(elsewhere)
    assert json.loads(evaluated("--transform", "host", "--host", elsewhere).stdout)["right"] == 3
    hosts.save(host(digest="0" * 64), elsewhere)
    assert str(evaluated("--transform", "host", "--host", elsewhere).exception) == (
        f"bitloom: {elsewhere}: must belong to the model {model_digest(corners())[:12]}, got '{'0' * 56}..."
    )


@pytest.mark.slow  # generates hardware twice
def test_a_build_keeps_the_host_file(tmp_path: Path) -> None:
    """It is found in the folder, and goes where a later build is of a network without one; a user's own stays."""
    model, data, folder = tmp_path / "tiny.npz", tmp_path / "data.npz", tmp_path / "build"
    file.save(corners(), model)
    hosts.save(host(), hosts.path_of(model))
    np.savez(data, x=np.array([[0.9, 0.6, 0.7, 0.5], [0.9, 0.6, 0.2, 0.1], [0.9, 0.0, 0.7, 0.49]]), y=[0, 1, 2])
    for kept in (True, False):
        done = call("build", model, "--out", folder)
        assert done.exit_code == 0, done.output
        assert (folder / hosts.name_of("tiny")).exists() == kept
        assert (Program.load(folder / "tiny.program.npz").host is not None) == kept
        if kept:
            done = call("evaluate", folder, data, "--transform", "host", "--json")
            assert json.loads(done.stdout)["right"] == 3
            hosts.path_of(model).unlink()
    (folder / hosts.name_of("tiny")).write_text("mine")
    assert call("build", model, "--out", folder).exit_code == 0
    assert (folder / hosts.name_of("tiny")).read_text() == "mine"
    hosts.path_of(model).write_text("{}")
    assert call("build", model, "--out", folder).exit_code == 1


@pytest.mark.slow
def test_tfc_is_right_on_9296_of_10000_images(tmp_path: Path) -> None:
    """The zoo of QONNX models says 92.96 % of TFC_1W1A."""
    source = board_data.file("tfc_1w1a.onnx")
    board_data.file("t10k-images-idx3-ubyte.gz")
    model = tmp_path / "tfc.npz"
    result = call("import", source, "--out", model)
    assert result.exit_code == 0, result.output
    done = call("evaluate", model, "mnist", "--transform", "host:1/255", "--json")
    data = json.loads(done.stdout)
    assert (data["images"], data["right"]) == (10_000, 9_296)
