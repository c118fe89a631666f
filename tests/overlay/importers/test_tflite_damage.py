"""Damaged TFLite files end in one-line errors."""

import re
import struct

import numpy as np
import pytest

from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file, import_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from tests.errors import refusal

from .tflite_files import DATA, Chain

pytest.importorskip("onnx", reason="the extra import is not installed")


def small():
    return (DATA / "small.tflite").read_bytes()


def variants(data, count, seed):
    """Files with a wrong byte, a wrong word, or without an end; the mark stays."""
    rng = np.random.default_rng(seed)
    words = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, len(data), len(data) - 4, 1 << 20]
    for number in range(count):
        damaged = bytearray(data)
        if number % 4 == 0:
            del damaged[int(rng.integers(8, len(damaged))) :]
        for _ in range(0 if number % 4 == 0 else int(rng.integers(1, 4))):
            place = int(rng.integers(0, len(damaged) // 4)) * 4
            if number % 4 == 1:
                damaged[place] = int(rng.integers(256))
            else:
                damaged[place : place + 4] = struct.pack("<I", words[rng.integers(len(words))])
        damaged[4:8] = b"TFL3"
        yield bytes(damaged)


def outcome(data):
    """The lines of the refusal of a file; none if it is imported."""
    try:
        import_graph(to_tflite_graph(data), name="damaged")
    except ImportRefused as e:
        return e.lines
    except ValueError as e:
        return (str(e),)
    return ()


def check(name, count, seed):
    refused = 0
    for data in variants((DATA / f"{name}.tflite").read_bytes(), count, seed):
        lines = outcome(data)
        refused += bool(lines)
        assert all(line and "\n" not in line and len(line) < 1000 for line in lines), lines
    assert refused > count // 2


@pytest.mark.parametrize(("name", "count"), [("small", 50), ("ssd", 8)])
def test_damaged_files(name, count):
    check(name, count, seed=1)


@pytest.mark.slow  # a minute or two
@pytest.mark.parametrize(("name", "count"), [("small", 10_000), ("ssd", 1_000)])
def test_many_damaged_files(name, count):
    check(name, count, seed=2)


def test_the_output_is_the_input():
    """So that no operator counts."""
    chain = Chain((1, 1, 6)).dense(np.random.default_rng(1), 4, (0.05, 3))
    chain.here = 0
    graph = to_tflite_graph(chain.bytes())
    assert graph.outputs[0] == graph.source.name
    with refusal(f"{graph.name}: a convolution or a matrix product must come first, got none"):
        import_graph(graph, name="net")


def test_another_file(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(b"\0\0\0\0ONNXabcd")
    line = f"{path}: must be a TFLite file, with TFL3 in bytes 4 to 7, got b'ONNX'"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        import_file(path)


def test_the_content_decides(tmp_path):
    path = tmp_path / "net.bin"
    path.write_bytes(small())
    assert import_file(path).model.network.name == "net"


def test_constant_of_another_size():
    chain = Chain((1, 1, 4), 0.1, 0).dense(np.random.default_rng(1), 3, (0.1, 0))
    chain.tensors[1].shape = (4, 4)
    with pytest.raises(ValueError, match=r"^FULLY_CONNECTED_0: constant c1: must have 16 bytes, got 12$"):
        to_tflite_graph(chain.bytes())


def test_several_images():
    chain = Chain((1, 1, 4), 0.1, 0).dense(np.random.default_rng(1), 3, (0.1, 0))
    chain.tensors[0].shape = (2, 1, 1, 4)
    line = "input x: must be one image, shape (1, ...), got (2, 1, 1, 4)"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        to_tflite_graph(chain.bytes())


def test_large_map():
    chain = Chain((2048, 2049, 1), 0.1, 0).conv(np.random.default_rng(1), 3, (3, 3), (0.1, 0))
    assert outcome(chain.bytes()) == ("CONV_2D_0 (CONV_2D): a map must have at most 4,194,304 values, got 4,196,352",)


def test_scale_of_nothing():
    chain = Chain((1, 1, 4), 0.0, 0).dense(np.random.default_rng(1), 3, (0.1, 0))
    assert outcome(chain.bytes()) == (
        "FULLY_CONNECTED_0 (FULLY_CONNECTED): the input must have a scale > 0 and a zero point of int8, got 0 and 0",
    )


@pytest.mark.parametrize(("inputs", "outputs"), [((), (3,)), ((0, 1, 2), ()), ((0, 1, 2), (3, 3))])
def test_an_operator_has_inputs_and_one_output(inputs, outputs):
    chain = Chain((1, 1, 4), 0.1, 0).dense(np.random.default_rng(1), 3, (0.1, 0))
    kind, _, _, *options = chain.operators[0]
    chain.operators[0] = (kind, inputs, outputs, *options)
    line = f"FULLY_CONNECTED_0: must have inputs and one output, got {len(inputs)} inputs and {len(outputs)} outputs"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        to_tflite_graph(chain.bytes())
