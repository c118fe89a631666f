"""The campaign of files of other tools: what it calls wrong, and that it draws every operator that is imported."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.overlay.fuzz import authorities
from bitloom.overlay.fuzz.campaign import replay
from bitloom.overlay.fuzz.campaigns import imports
from bitloom.overlay.fuzz.designs import IMPORTED
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.importers import verify
from bitloom.overlay.importers.errors import ImportRefused
from tests.errors import value_error

onnx = pytest.importorskip("onnx", reason="the extra import is not installed")
tflite = pytest.importorskip("tflite", reason="the extra import is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from bitloom.overlay.importers.operators import OPERATORS  # noqa: E402
from bitloom.overlay.importers.operators.registry import MICROSOFT, ONNX, QONNX, TENSORFLOW  # noqa: E402

NUMBER = 23
"""A small file with QuantizeLinear that is imported."""
NOT_DRAWN = {
    "onnx.brevitas, finn.custom_op.general: older names of QONNX's operators": {*QONNX[1:]},
    "QuantizeLinear and DequantizeLinear of onnxruntime are ONNX's": {"QuantizeLinear", "DequantizeLinear"},
    "older files have it in place of Resize": {"Upsample"},
    "exporters write Quant": {"IntQuant", "MultiThreshold", "Trunc"},
    "of all scores the host has the class": {"ArgMax", "TopK"},
    "nothing happens there, as in Cast": {"CastLike"},
    "DEPTH_TO_SPACE is the same the other way round": {"SPACE_TO_DEPTH"},
    "PAD is drawn, with zero points around": {"PADV2"},
}
"""Operators, or domains of some, that are not drawn, and why."""
SELDOM = {("", "Log"), ("", "Mish"), ("tflite", "MIRROR_PAD")}
"""Operators that are drawn, but seldom in files that are imported: what simulated hardware computes of them is in the
table of test_hardware.py."""
FILES = 200


@pytest.fixture(scope="module")
def case():
    return imports.ImportCampaign(["qdq"]).case(Pick("imports", 0, NUMBER))


def ending(case, **changes):
    return imports.ImportCampaign().run({**case, **changes})


def operators(data: bytes) -> set[tuple[str, str]]:
    """Domains and names of a file's operators."""
    if data[4:8] == b"TFL3":
        words = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
        model = tflite.Model.GetRootAs(data, 0)
        return {
            (TENSORFLOW[0], words[model.OperatorCodes(k).BuiltinCode()]) for k in range(model.OperatorCodesLength())
        }
    return {(node.domain, node.op_type) for node in onnx.load_from_string(data).graph.node}


def to_be_drawn() -> set[tuple[str, str]]:
    """Domains and names of the operators that files must have."""
    others = set().union(*NOT_DRAWN.values())
    return {(domain, name) for domain, name in OPERATORS if not {domain, name} & others}


def test_every_operator_is_drawn():
    """Who imports another one has a step of random_onnx.py or random_tflite.py draw it, or a reason in NOT_DRAWN."""
    drawn = set()
    for number in range(FILES):
        for name, kind in imports.KINDS.items():
            drawn |= operators(kind.draw(Pick(f"random_{name}", number)).data)
    assert to_be_drawn() - drawn == set()
    assert {domain for domain, _ in drawn} == {*ONNX, QONNX[0], *MICROSOFT, *TENSORFLOW}


def test_a_seed_has_its_files():
    for kind in imports.KINDS.values():
        files = [kind.draw(Pick(number)) for number in range(20)]
        assert files == [kind.draw(Pick(number)) for number in range(20)]
        assert len({file.data for file in files}) == 20


@pytest.mark.parametrize("kind", ["qdq", "qoperator", "qonnx"])
def test_some_files_say_how_halves_are_rounded(kind):
    """In others an image with a half counts for nothing."""
    assert sum(imports.KINDS[kind].draw(Pick(f"random_{kind}", number)).halves for number in range(60)) >= 4


def moved(by, tied):
    """An authority whose outputs are others, with these images tied."""
    run = authorities.by_onnxruntime

    def wrong(data, twin, images):
        outcome = run(data, twin, images)
        return replace(outcome, outputs=[x + by for x in outcome.outputs], tied=np.full(len(images), tied))

    return authorities.Authority("onnxruntime", "onnxruntime", wrong)


def with_authority(monkeypatch, kind, authority):
    """Files of a kind are computed by another authority."""
    monkeypatch.setitem(imports.KINDS, kind, replace(imports.KINDS[kind], authority=authority))


def test_outputs_that_are_others(case, monkeypatch):
    assert ending(case) == ("qdq exact", "")
    with_authority(monkeypatch, "qdq", moved(3, tied=False))
    word, what = ending(case)
    assert word == "wrong"
    assert what.startswith("qdq: outputs must be the authority's, got others in ")
    assert what.endswith(" values, by up to 3")
    with_authority(monkeypatch, "qdq", moved(np.nan, tied=False))
    assert ending(case)[0] == "wrong"
    with_authority(monkeypatch, "qdq", moved(3, tied=True))
    assert ending(case, halves=False) == ("qdq tied", "")
    assert ending(case, halves=True)[0] == "wrong"


def test_sums_that_are_off_excuse_their_images_alone(monkeypatch):
    """One layer of this file is a level off in some sums, which the second and the fourth of 12 images have."""
    path = Path(__file__).parent / "cases" / "imports-node-of-several-sections.json"
    case = json.loads(path.read_text())["case"]
    assert ending(case) == ("qoperator inexact", "")
    known = imports.KINDS["qoperator"].authority
    for image, word in ((1, "qoperator inexact"), (3, "qoperator inexact"), (0, "wrong"), (11, "qoperator inexact")):

        def moved(data, twin, images, image=image):
            computed = known.run(data, twin, images)
            outputs = [output.copy() for output in computed.outputs]
            outputs[0][image] += 1
            return replace(computed, outputs=outputs, tied=np.zeros(len(images), bool))

        with_authority(monkeypatch, "qoperator", replace(known, run=moved))
        assert ending(case)[0] == word, image


def test_more_levels_than_the_import_says_are_wrong(monkeypatch):
    """Of the same file, where it says of no layer which sums are off."""
    path = Path(__file__).parent / "cases" / "imports-node-of-several-sections.json"
    monkeypatch.setattr(verify, "levels_off", lambda imported: {})
    word, what = ending(json.loads(path.read_text())["case"])
    assert word == "not verified"
    assert what.startswith("qoperator: t57: the rewriting must equal the operations that it was made of, got ")


def test_an_authority_that_is_missing_or_refuses(case, monkeypatch):
    def refuse(data, twin, images):
        raise authorities.FileRefused("node 7 is not known, got 3")

    with_authority(monkeypatch, "qdq", authorities.Authority("a-tool", "json", refuse))
    assert ending(case) == ("qdq not compared: node N is not known", "")
    with_authority(monkeypatch, "qdq", authorities.Authority("a-tool", "no_such_module", refuse))
    assert ending(case) == ("qdq not compared: a-tool is not installed", "")


def test_a_network_without_room(case, monkeypatch):
    monkeypatch.setitem(imports.IMPORTED, "integer", IMPORTED["binary"])
    assert ending(case) == ("qdq exact, not simulated", "")


def fail(*_, **__):
    raise ValueError("conv_1: a rule, got 1")


def warn(*_, **__):
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


STUCK = ("stuck", "2 frames must be computed")
FAULTS = [
    ("SECONDS", -1.0, ("slow", "an import must take at most -1 s, got 0.")),
    ("chosen_design", fail, ("not built", "what is imported must be built, got: conv_1: a rule, got 1")),
    ("verify", fail, ("not verified", "conv_1: a rule, got 1")),
    ("verify", warn, ("warning", "there must be no warning, got: overflow")),
    ("compared", lambda *_: STUCK, STUCK),
    ("import_graph", fail, ("qdq refused: conv_N: a rule", "")),
]


@pytest.mark.parametrize(("name", "become", "ends"), FAULTS)
def test_faults_of_an_import(case, monkeypatch, name, become, ends):
    monkeypatch.setattr(imports, name, become)
    word, what = ending(case)
    assert word == ends[0]
    assert what.startswith(f"qdq: {ends[1]}" if ends[1] else "")


UNCLEAR = [ImportRefused(["Conv_1 (Conv): \x1b[31m"]), ImportRefused(["x" * 1000])]


@pytest.mark.parametrize("error", [ValueError("one\nand another"), *UNCLEAR])
def test_refusals_that_are_not_clear(case, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(imports, "import_graph", refuse)
    assert ending(case)[0] == "unclear"


def test_refusals_are_counted_by_their_rules(case, monkeypatch):
    def refuse(*_, **__):
        raise ImportRefused(["Conv_1 (Conv) and 2 more like it: strides must be 1..4096, got (0, 1); or so", "another"])

    monkeypatch.setattr(imports, "import_graph", refuse)
    assert ending(case) == ("qdq refused: strides must be N", "")


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr(imports, "find_spec", lambda name: None)
    with value_error("campaign imports needs the extra import: pip install 'bitloom-fpga[import]' (no onnx)"):
        imports.ImportCampaign()


def test_values_at_a_boundary():
    """Of QuantizeLinear halves; of a quantiser that rounds down whole numbers; of one bit zero."""
    helper = onnx.helper
    constants = {"scale": np.float32(0.5), "zero": np.float32(0)}
    inputs = ["x", "scale", "zero", "bits"]
    x = np.array([[0.25], [0.5], [0.26], [0.0], [1e-8]])
    for node, tied in (
        (helper.make_node("QuantizeLinear", inputs[:3], ["y"]), [True, False, False, False, False]),
        (helper.make_node("Quant", inputs, ["y"], rounding_mode="ROUND"), [True, False, False, False, False]),
        (helper.make_node("Quant", inputs, ["y"], rounding_mode="FLOOR"), [False, True, False, True, True]),
        (helper.make_node("BipolarQuant", inputs[:2], ["y"]), [False, False, False, True, True]),
    ):
        assert authorities._tied([authorities._to_boundary(node, x, constants)], 5).tolist() == tied


def test_a_kernel_may_end_its_process(tmp_path):
    """The campaign goes on, and ends with all the processes that it began."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose kernel ends its process, is not installed")
    kept = Path(__file__).parent / "cases/imports-kernel-that-ends-its-process.json"
    ended = ("tflite not compared: ai-edge-litert: a kernel ended the process", "")
    assert [replay(kept), replay(kept)] == [ended, ended]
    words = ("fuzz", "imports", "--seed", "7", "--cases", "20", "--jobs", "2", "--out", str(tmp_path))
    subprocess.run([sys.executable, "-m", "bitloom", *words], check=True, timeout=600, capture_output=True)
