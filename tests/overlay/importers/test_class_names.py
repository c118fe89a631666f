"""Names of classes that files bring along."""

import io
import json
import zipfile

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.overlay.importers.class_names import fitting, labels_of_metadata, labels_of_texts
from bitloom.overlay.importers.source import Labels
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from tests.commands import call

from .onnx_files import Chain, onnx
from .tflite_files import Chain as TfliteChain


def network(*metadata):
    """A file with three scores and some metadata."""
    rng = np.random.default_rng(0)
    chain = Chain((1, 3, 3)).quant(0.25, 4).node("Flatten", axis=1)
    model = chain.node(
        "Gemm", chain.quant_weight(rng.normal(size=(3, 9)), 0.25, 4), rng.normal(size=3), transB=1
    ).model()
    onnx.helper.set_model_props(model, dict(metadata))
    return model.SerializeToString()


def packed(**texts):
    """A zip archive with these texts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"{name}.txt", text)
    return out.getvalue()


FORMS = [
    json.dumps(["cat", "it's", "d, g"]),
    json.dumps({"1": "it's", "0": "cat", "2": "d, g"}),
    json.dumps({"d, g": 2, "cat": 0, "it's": 1}),
    *map(repr, (["cat", "it's", "d, g"], ("cat", "it's", "d, g"), {0: "cat", 1: "it's", 2: "d, g"})),
    '{ 2:\'d, g\' ,0 : "cat", 1:"it\'s", }',
    "cat\nit's\nd, g\n",
    " cat\r\n it's\r\nd, g",
]


@pytest.mark.parametrize("value", FORMS)
def test_usual_forms(value):
    assert labels_of_metadata([("Names", value)]) == (Labels("metadata names", ("cat", "it's", "d, g")),)


OTHERS = [
    "",
    " ",
    "[1, 2]",
    "[[]]",
    "{'a': 'b'}",
    "{}",
    "[]",
    "[-----1]",
    "[__import__('os')]",
    "['a' 'b']",
    "['\\x41']",
]
OTHERS += ['{"0": "a", "2": "b"}', '{"a": 0, "b": 0}', '{"0": "a", "b": 1}']
LONG = ["[" * 100_000, "['a'" + " " * 500_000 + "b]", "['a'" + ", " * 200_000, "[" + "'a'," * 100_000 + "!"]
LONG += ["[" + "9" * 10_000 + "]", '{"' + "9" * 10_000 + '": "a"}']


@pytest.mark.parametrize("value", [*OTHERS, *LONG])
def test_what_holds_no_names(value):
    assert labels_of_metadata([("names", value)]) == ()


def test_too_long_for_names():
    assert labels_of_metadata([("names", "a" * ((1 << 20) + 1))]) == ()


def test_the_first_that_fits():
    of = [
        Labels("metadata names", ("a",)),
        Labels("metadata classes", ("a", "b\n")),
        Labels("metadata labels", ("x", "y")),
    ]
    assert fitting(of, 2) == (("x", "y"), "names of metadata labels")
    assert fitting(of[:1], 2) == ((), "left out metadata names: must have 2 names, got 1")
    said = "left out metadata classes: classes must be 1..100 printable characters, got 'b\\n'"
    assert fitting(of[1:2], 2) == ((), said)
    assert fitting([], 2) == ((), "")


def test_texts_behind_a_tflite_file():
    rng = np.random.default_rng(1)
    chain = TfliteChain((1, 1, 6)).dense(rng, 4, (0.05, 3))
    plain = chain.bytes()
    assert to_tflite_graph(plain).labels == ()
    labels = to_tflite_graph(plain + packed(other="1\n2", labels="a\nb\n c \nd\n\n")).labels
    assert fitting(labels, 4) == (("a", "b", "c", "d"), "names of packed 'labels.txt'")
    damaged = bytearray(plain + packed(labels="a\nb\nc\nd"))
    damaged[damaged.index(b"a\nb")] = 0x62
    said = fitting(labels_of_texts(bytes(damaged)), 4)[1]
    assert said.startswith("left out packed texts (must be a whole, unchanged zip archive, got: Bad CRC-32")
    assert labels_of_texts(packed(labels=b"\xff\n"))[0].where == "packed texts (must be text in UTF-8, got other bytes)"


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(network(("names", "{0: 'ant', 1: 'bee', 2: 'cat'}")))
    (tmp_path / "own.txt").write_text("x\ny\nz\n")

    def run(*options):
        result = call("import", "net.onnx", "--check", "0", "--json", *options)
        assert result.exit_code == 0, result.output
        facts = json.loads(result.stdout)
        assert tuple(facts["classes"]) == file.load("net.npz").network.classes
        return facts["classes"], facts["named"]

    assert run() == (["ant", "bee", "cat"], "names of metadata names")
    assert run("--classes", "own.txt") == (["x", "y", "z"], "own.txt")
    (tmp_path / "net.onnx").write_bytes(network(("names", "ant, bee")))
    assert run() == ([], "left out metadata names: must have 3 names, got 2")
    (tmp_path / "net.onnx").write_bytes(network())
    assert run() == ([], "")
