"""A host file comes back as it was, and each of its limits is one: at the limit it is read, beyond it refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.host.file import from_bytes, to_bytes
from bitloom.golden.host.host import Host
from bitloom.golden.layer import Map
from tests.errors import value_error

SOURCE = Map(height=2, width=1, channels=3, encoding=signed(3))
OUTPUT = Map(height=1, width=1, channels=6, encoding=signed(8))
DIGEST = "0123456789abcdef" * 4
MOST = 1 << 31


def part(first: int, size: int, *chain: list) -> dict[str, Any]:
    return {"first": first, "size": size, "chain": list(chain)}


def output(name: str = "scores", **fields: Any) -> dict[str, Any]:
    parts = [part(0, 4, ["line", [2.0, 0.5], [1.0, -1.0]], ["clip", [None, 0.0], [3.0, None]]), part(5, 1)]
    description = {"name": name, "shape": [5], "parts": parts, "order": [[4, 5, -1]], "closing": ["Softmax"]}
    description |= {"classes": 5, "apart": 1}
    return description | fields


def content(**fields: Any) -> dict[str, Any]:
    """Contents of a file, with other outputs, or with other fields of its input."""
    given = {
        "shape": [3, 2],
        "order": [[0, 3, 1, 2, 3]],
        "chain": [["line", [2.0, 2.0, 2.0], [0.0, 1.0, -1.0]]],
        "boundaries": [[-1.0, 0.0, 0.0, 2.0]] * 3,
        "reached": [True, False, True, False],
        "first": -1,
        "stride": 1,
        "integers": {"low": -4, "high": 3, "scale": 0.5, "zero": 1},
    }
    outputs = fields.pop("outputs", [output(), output("more", shape=[1, 5], closing=[])])
    return {"format": "bitloom host", "version": 5, "digest": DIGEST, "input": given | fields, "outputs": outputs}


def read(data: dict[str, Any]) -> Host:
    return from_bytes(json.dumps(data).encode(), DIGEST, SOURCE, OUTPUT)


CHAIN = ["line", [1.0] * 3, [0.0] * 3]


def integers(low: Any, zero: Any, high: Any, scale: Any = 1.0) -> dict[str, Any]:
    return content(integers={"low": low, "high": high, "scale": scale, "zero": zero})


SHAPES = {(): True, (1,): True, (5,): True, (1, 5, 1): True, (2, 2): False, (2, 1, 3): False}
"""Shapes of an output, and whether its values are the scores of classes."""


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_one_vector(shape):
    """A single number is one, too; several positions with values each are none."""
    size = int(np.prod(shape))
    order = [[0, size, 1]] if size > 1 else [[0]]
    description = output(shape=[*shape], parts=[part(0, size)], order=order, classes=size, closing=[])
    assert read(content(outputs=[description])).has_scores == SHAPES[shape]


def only(**fields: Any) -> dict[str, Any]:
    return content(outputs=[output(**fields)])


def chained(kind: str, first: float | None, second: int = 3) -> dict[str, Any]:
    return content(chain=[[kind, [first] * 3, [0.0] * second]])


TAKEN: dict[str, Callable[[], dict[str, Any]]] = {
    "axes": lambda: content(shape=[1, 1, 3, 1, 1, 2, 1, 1]),
    "outputs": lambda: content(outputs=[output(str(number)) for number in range(64)]),
    "name": lambda: only(name="x" * 256),
    "axes of an output": lambda: only(shape=[1, 1, 1, 5, 1, 1, 1, 1]),
    "links": lambda: content(chain=[CHAIN] * 64),
    "words": lambda: only(closing=["Sigmoid"] * 64),
    "the network's output": lambda: only(parts=[part(0, 6)], shape=[6], order=[[0, 6, 1]], classes=6),
    "groups": lambda: only(parts=[part(0, 6)], shape=[6], order=[[0, 6, 1]], classes=3, apart=2),
    "a constant": lambda: only(parts=[], constant=[1.0] * 5),
    "integers": lambda: integers(-MOST, 0, MOST),
    "two integers": lambda: integers(0, 0, 1),
    "levels from the lowest": lambda: content(first=-4),
    "levels to the highest": lambda: content(first=-1),
    "one row of boundaries": lambda: content(boundaries=[[0.0, 0.0, 1.0, 1.0]]),
    "no levels": lambda: content(boundaries=None, reached=None, first=-MOST),
    "no integers": lambda: content(integers=None),
}
VERSION = "must be a bitloom host file of version 5"
INPUT_SHAPE = "input.shape must have 6 values, and at most 8 axes, got"
SHAPE = "outputs.shape must have 5 values, and at most 8 axes, got"
CLASSES = "outputs.classes and apart must divide 5 values, got"
PARTS = "outputs.parts must lie in the network's output of 6 values, got"
LINKS = "outputs.chain: links must have a number for each channel of 5 values, got"
LEVELS = "input.first and stride must give values of signed 3 bit (-4..3), got"
INTEGERS = f"input.integers must have {-MOST} <= low <= zero <= high <= {MOST} and low < high, got"
CLOSING = "outputs.closing must be of Softmax, LogSoftmax, Sigmoid, ArgMax, TopK, got"
REACHED = "input.reached must have as many entries as input.boundaries have columns"
REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "format": (lambda: content() | {"format": "x"}, VERSION),
    "version": (lambda: content() | {"version": 4}, f"{VERSION}, got version 4: import the network again"),
    "digest": (lambda: content() | {"digest": "f"}, "must belong to the model 0123456789ab, got 'f'"),
    "axes": (lambda: content(shape=[1, 1, 3, 1, 1, 2, 1, 1, 1]), f"{INPUT_SHAPE} (1, 1, 3, 1, 1, 2, 1, 1, 1)"),
    "size": (lambda: content(shape=[3, 1]), f"{INPUT_SHAPE} (3, 1)"),
    "signs": (lambda: content(shape=[-3, -2]), f"{INPUT_SHAPE} (-3, -2)"),
    "order": (lambda: content(order=[[0, 3, 1, 2, 2]]), "input.order must have each of 6 places once"),
    "outputs": (lambda: content(outputs=[]), "outputs must be a list of 1 to 64, got []"),
    "names": (
        lambda: content(outputs=[output(), output()]),
        "outputs must have names of their own, got ['scores', 'scores']",
    ),
    "axes of an output": (lambda: only(shape=[1, 1, 1, 5, *[1] * 5]), f"{SHAPE} (1, 1, 1, 5, 1, 1, 1, 1, 1)"),
    "size of an output": (lambda: only(shape=[4]), f"{SHAPE} (4,)"),
    "order of an output": (lambda: only(order=[[0, 4, 1], [5]]), "outputs.order must have each of 5 places once"),
    "classes": (lambda: only(classes=2), f"{CLASSES} 2, 1"),
    "no class": (lambda: only(classes=0), f"{CLASSES} 0, 1"),
    "apart": (lambda: only(apart=0), f"{CLASSES} 5, 0"),
    "before the output": (lambda: only(parts=[part(-1, 5)]), f"{PARTS} -1, 5"),
    "behind the output": (lambda: only(parts=[part(2, 5)]), f"{PARTS} 2, 5"),
    "nothing of the output": (lambda: only(parts=[part(2, 0)]), f"{PARTS} 2, 0"),
    "channels": (lambda: only(parts=[part(0, 5, ["line", [1.0] * 2, [0.0] * 2])]), f"{LINKS} 2"),
    "no channel": (lambda: only(parts=[part(0, 5, ["line", [], []])]), f"{LINKS} 0"),
    "constant": (
        lambda: only(parts=[], constant=[1.0, None, 1.0, 1.0, 1.0]),
        "outputs.constant must be a list of finite numbers",
    ),
    "empty constant": (lambda: only(parts=[], constant=[]), "outputs.constant must be a list of finite numbers"),
    "links": (lambda: content(chain=[CHAIN] * 65), "input.chain: must have at most 64 links, got 65"),
    "kind": (lambda: chained("curve", 1.0), "input.chain: links must be line or clip, got 'curve'"),
    "endless line": (lambda: chained("line", None), "input.chain: lines must have finite numbers"),
    "numbers": (lambda: chained("clip", None, 2), "input.chain: links must have 3 numbers each"),
    "first": (
        lambda: content(boundaries=None, reached=None, first=MOST + 1),
        f"input.first must be {-MOST}..{MOST}, got {MOST + 1}",
    ),
    "lowest": (lambda: content(first=-5), f"{LEVELS} -5, 1"),
    "highest": (lambda: content(first=0), f"{LEVELS} 0, 1"),
    "stride": (lambda: content(stride=2), f"{LEVELS} -1, 2"),
    "rows": (lambda: content(boundaries=[[0.0] * 4] * 2), "input.boundaries must have 1 or 3 rows"),
    "falling": (lambda: content(boundaries=[[0.0, 1.0, 0.5, 2.0]]), "input.boundaries must be finite and rise"),
    "reached": (lambda: content(reached=[True] * 3), REACHED),
    "one integer": (lambda: integers(1, 1, 1), f"{INTEGERS} 1, 1, 1"),
    "zero": (lambda: integers(0, 4, 3), f"{INTEGERS} 0, 4, 3"),
    "zero below": (lambda: integers(0, -1, 3), f"{INTEGERS} 0, -1, 3"),
    "scale": (lambda: integers(0, 0, 1, 0.0), "input.integers must have a finite scale above 0, got 0.0"),
    "closing": (lambda: only(closing=["Relu"]), f"{CLOSING} ['Relu']"),
    "words": (lambda: only(closing="Sigmoid"), f"{CLOSING} 'Sigmoid'"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_taken_comes_back(case: str) -> None:
    host = read(TAKEN[case]())
    assert to_bytes(from_bytes(to_bytes(host), DIGEST, SOURCE, OUTPUT)) == to_bytes(host)
    assert json.loads(to_bytes(host)) == TAKEN[case]()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    make, message = REFUSED[case]
    with value_error(message):
        read(make())


@pytest.mark.parametrize(("length", "words"), [(65, ["Sigmoid"]), (1, ["Sigmoid"] * 65)])
def test_too_many(length: int, words: list[str]) -> None:
    """Outputs, and words behind them: a message shows the beginning of them."""
    with pytest.raises(
        ValueError, match=r"^outputs(\.closing)? must be (a list of 1 to 64|of Softmax, .*TopK), got \["
    ):
        read(content(outputs=[output(str(number), closing=words) for number in range(length)]))


@pytest.mark.parametrize("name", ["", "x" * 257, "a\n", 3])
def test_names(name: object) -> None:
    with pytest.raises(ValueError, match=r"^outputs must have printable names of 1 to 256 characters, got "):
        read(only(name=name))


def test_what_the_host_computes() -> None:
    """Each step by hand: an image is placed, comes through lines, and reaches boundaries; scores go back."""
    host = read(content(outputs=[output()]))
    images = np.array([[[-1, 0], [1, 2], [0, 1]]])  # channels, rows
    real = 2 * images + np.array([0, 1, -1])[:, None]
    levels = (real[..., None] > [-1, 0, 0, 2]).sum(-1) + (real == -1) + (real == 0)
    expected = (-1 + levels).transpose(0, 2, 1)[:, :, None]
    np.testing.assert_array_equal(host.to_input(images, SOURCE.shape), expected)
    values = np.array([1, -3, 0, 4, 9, -7]).reshape(1, 1, 1, 6)
    lines = [min(2 * 1 + 1, 3), max(-3 / 2 - 1, 0), min(2 * 0 + 1, 3), max(4 / 2 - 1, 0), -7]
    assert host.scores(values).tolist() == [lines[::-1]]
    powers = np.exp(np.array(lines[::-1]) - max(lines))
    closed = host.closed(values)
    assert isinstance(closed, np.ndarray)
    np.testing.assert_allclose(closed, [powers / powers.sum()])
    assert host.classes(values).tolist() == [4]
    assert host.integers is not None
    assert host.integers.of(np.array([0.25, -0.25, 0.24, 9, -9])).tolist() == [2, 0, 1, 3, -4]
