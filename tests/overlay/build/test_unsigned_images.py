"""Images of 0..255 as they are: the command build makes hardware that takes them, with both engines, bit-exact."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden import file
from bitloom.golden.encoding import Encoding, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import Conditions, run
from bitloom.overlay.cli.group import bitloom
from tests.cases import random_images, random_model

FRAMES = 4
PIXELS = unsigned(8)


def model(engine: str, encoding: Encoding = PIXELS) -> Model:
    """A conv over all of the image, an activation, a pool, a dense layer."""
    source = Map(height=5, width=6, channels=3, encoding=encoding)
    conv = {"name": "conv_1", "out_channels": 5, "kernel": (3, 2), "padding": (1, 0, 1, 1)}
    pool = {"name": "pool_1", "kernel": (2, 2), "stride": (2, 1)}
    layers: tuple[Layer, ...] = (
        Conv(**conv), Threshold(name="act_1"), MaxPool(**pool), Dense(name="dense_2", out_channels=3),
    )  # fmt: skip
    if engine == "integer":
        dense = Dense(name="dense_2", out_channels=3, weight=signed(8))
        act = Requantise(name="act_1", encoding=signed(9), clip=(-255, 255))
        layers = (Conv(**conv, weight=signed(8)), act, AvgPool(**pool), dense)
    network = Network(name=f"{engine}-images", input=source, layers=layers)
    return random_model(network, np.random.default_rng(5))


def built(folder: Path, made: Model) -> builds.Build:
    """What the command build makes of the model's file."""
    file.save(made, folder / "mine.npz")
    words = ["build", str(folder / "mine.npz"), "--out", str(folder / "build"), "--json"]
    result = CliRunner().invoke(bitloom, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["folder"] == str(folder / "build")
    return builds.load(folder / "build")


def images(made: Model) -> np.ndarray:
    """Random ones, one that is black and one that is white."""
    found = random_images(made, FRAMES, np.random.default_rng(6))
    found[1], found[2] = 0, 255
    return found


@pytest.mark.parametrize(("engine", "field", "value"), [("integer", "feature_bits", 9), ("binary", "shift_bits", 4)])
def test_images_of_a_camera_are_computed_bit_exactly(engine: str, field: str, value: int, tmp_path: Path) -> None:
    made = model(engine)
    found = built(tmp_path, made)
    assert found.design.npus[0].value(field) == value
    assert run(found, made, images(made), conditions=Conditions(stall=0.3, seed=1)).bit_exact_frames == FRAMES
