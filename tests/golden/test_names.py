"""Names of networks, designs, boards, layers and classes: what is allowed, what is refused, and where."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import check_classes, check_name, check_path
from tests.errors import value_error
from tests.golden.test_network import ARRAYS, NETWORK

GOOD = ["a", "1", "_", "cnv-w1a1", "LFC.v2_b", "a" * 64, "0" * 64]
HOSTILE = ["", ".", "..", "../a", "/etc/a", "a/b", "a\\b", ".hidden", "-rf", "a" * 65, None, 5, b"a", ["a"]]
HOSTILE += [f"a{character}b" for character in " \n\t\r;#'\"&:=,|!@"] + [f"a{character}" for character in "\n\0}"]
HOSTILE += [
    " a",
    "$(id)",
    "$x",
    "`id`",
    "[exit]",
    "{a",
    "<b>",
    "a*/b",
    "ä",
    "é",
    "\u202ea",
    "\x1b[31m",
    "%s",
    "~",
    "(a)",
]
LABELS = ["0", "tabby cat", "Häuschen", "<b>&\"'", "$x$ {y} [z] \\", "木", "a" * 100]
BAD_LABELS = ["", " ", "a\nb", "a\0", "\x1b[2J", "\u202ea", "\u2028", "a" * 101, 5, None, b"a"]


def said(what: str, name: object) -> str:
    shown = repr(name) if repr(name).isprintable() else ascii(name)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"{what}: name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ., got {shown}"


@pytest.mark.parametrize("name", GOOD)
def test_good_names(name: str) -> None:
    check_name("network", name)
    assert replace(NETWORK, name=name).name == name


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_network_can_not_have_it(name: object) -> None:
    with value_error(said("network", name)):
        replace(NETWORK, name=name)


@pytest.mark.parametrize("name", [name for name in HOSTILE if isinstance(name, str)], ids=ascii)
def test_a_layer_can_not_have_it(name: str) -> None:
    with pytest.raises(ValueError, match=r"^layer: name must (be lower_snake_case|have at most 64 characters), got "):
        Threshold(name=name)


def test_a_message_is_one_short_line() -> None:
    with pytest.raises(ValueError, match=r"^network: name must .*\Z") as error:
        check_name("network", "\n\x1b[2J" * 1000)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 160


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in ("", None)], ids=ascii)
def test_a_model_file_can_not_bring_it(name: object, tmp_path) -> None:
    """The name in a file that is else whole and has the right digest."""
    if isinstance(name, bytes):
        return  # no JSON
    path = tmp_path / "model.npz"
    file.save(networks.load("digits-or"), path)
    with zipfile.ZipFile(path) as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    header = json.loads(members["bitloom.json"])
    header["network"]["name"] = name
    members["bitloom.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as new:
        for member, data in members.items():
            new.writestr(member, data)
    with value_error(f"{path}: {said('network', name)}"):
        file.load(path)


@pytest.mark.parametrize("label", LABELS)
def test_good_classes(label: str, tmp_path) -> None:
    model = file.Model(replace(NETWORK, classes=("a", label)), ARRAYS)
    file.save(model, tmp_path / "model.npz")
    assert file.load(tmp_path / "model.npz").network.classes == ("a", label)


@pytest.mark.parametrize("label", BAD_LABELS, ids=ascii)
def test_bad_classes(label: object) -> None:
    shown = repr(label) if repr(label).isprintable() else ascii(label)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    with value_error(f"small: classes must be 1..100 printable characters, got {shown}"):
        replace(NETWORK, classes=("a", label))


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_classes_as_channels(count: int) -> None:
    with value_error(f"small: classes must be none or 2, got {count}"):
        replace(NETWORK, classes=("a",) * count)
    check_classes("small", (), 2)


@pytest.mark.parametrize("classes", ["ab", b"ab", 5, None, {"a": 1, "b": 2}, {"a"}], ids=repr)
def test_classes_are_a_sequence_of_names(classes: object) -> None:
    """Not a text, whose letters would be names, nor what has no order."""
    with value_error(f"small: classes must be a sequence of names, got {classes!r}"):
        replace(NETWORK, classes=classes)


@pytest.mark.parametrize("classes", [["a", "b"], np.array(["a", "b"])])
def test_classes_become_a_tuple_of_strings(classes: object) -> None:
    named = replace(NETWORK, classes=classes)
    assert named == replace(NETWORK, classes=("a", "b"))
    assert [type(label) for label in named.classes] == [str, str]


BAD_PATHS = ["", "+a", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/.b", "./a", "a\nb", "a b", 5, None]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_paths(path: object) -> None:
    with value_error(f"build: must be a path inside the folder, got {path!r}"):
        check_path("build", path)
