"""Trained networks of Xilinx/BNN-PYNQ as Models, and what a board recorded of them.

The files are not part of this repository. They lie in the folder that the environment variable BITLOOM_DATA names,
by default ../shared/data beside the checkout; its README states the rules that are converted here.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from golden.conv import Conv, Dense
from golden.encoding import BIPOLAR, signed
from golden.layer import Layer, Map
from golden.network import Model, Network
from golden.pool import MaxPool
from golden.threshold import Threshold

DATA = Path(os.environ.get("BITLOOM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def data_file(name: str) -> Path:
    """Path of a recorded file; skips the test where it is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"recorded board data are absent: {path} (set BITLOOM_DATA to their folder)")
    return path


def cnv() -> Model:
    """CNV W1A1 (CIFAR-10). Input signed 8 bit; the output are 64 signed sums, of which 10 are classes."""
    data = np.load(data_file("cnvW1A1_cifar10.npz"))
    layers: list[Layer] = []
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for i in range(9):
        outputs, fan_in = data[f"W{i}_shape"]
        name = f"conv_{i}" if i < 6 else f"dense_{i}"
        side = 3 if i < 6 else 1
        weight = _signs(data, i).reshape(outputs, side, side, -1)
        if i < 6:
            layers.append(Conv(name=name, out_channels=int(outputs), kernel=(3, 3)))
        else:
            layers.append(Dense(name=name, out_channels=int(outputs)))
        arrays[name] = {"weight": weight}
        if i < 8:  # layer 0: T < 2 acc, where T is in units of 2^-8 and acc in units of 2^-7
            threshold = data["T0"].astype(np.int64) // 2 + 1 if i == 0 else _from_matches(data[f"T{i}"], fan_in)
            _add_threshold(layers, arrays, i, threshold)
        if i in (1, 3):
            layers.append(MaxPool(name=f"pool_{i}", kernel=(2, 2), stride=(2, 2)))
    source = Map(height=32, width=32, channels=3, encoding=signed(8))
    classes = tuple(str(c) for c in data["classes"])
    return Model(Network(name="cnv_w1a1", input=source, layers=tuple(layers), classes=classes), arrays)


def lfc() -> Model:
    """LFC W1A1 (MNIST). Input 832 bipolar values; the output are 64 bipolar values, of which 10 are classes."""
    data = np.load(data_file("lfcW1A1_mnist.npz"))
    layers: list[Layer] = []
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for i in range(4):
        outputs, fan_in = data[f"W{i}_shape"]
        layers.append(Dense(name=f"dense_{i}", out_channels=int(outputs)))
        arrays[f"dense_{i}"] = {"weight": _signs(data, i).reshape(outputs, 1, 1, fan_in)}
        _add_threshold(layers, arrays, i, _from_matches(data[f"T{i}"], fan_in))
    source = Map(height=1, width=1, channels=832, encoding=BIPOLAR)
    classes = tuple(str(c) for c in data["classes"])
    return Model(Network(name="lfc_w1a1", input=source, layers=tuple(layers), classes=classes), arrays)


def cnv_images(pixels: np.ndarray) -> np.ndarray:
    """(N, 32, 32, 3) uint8 RGB -> the network's input, signed 8 bit in units of 2^-7."""
    scaled = np.floor((2 * pixels.astype(np.float64) / 255 - 1) * 128 + 0.5)
    return np.clip(scaled, -128, 127).astype(np.int8)


def lfc_images(pixels: np.ndarray) -> np.ndarray:
    """(N, 784) uint8, raster order -> (N, 1, 1, 832) of +-1, padded with -1."""
    bits = np.pad(pixels >= 128, ((0, 0), (0, 832 - 784)))
    return (2 * bits.astype(np.int8) - 1)[:, None, None, :]


def matches(sums: np.ndarray, fan_in: int) -> np.ndarray:
    """Signed sums of ``fan_in`` products of +-1 -> numbers of XNOR matches."""
    return (sums + fan_in) // 2


def highest_set_class(bits: np.ndarray) -> np.ndarray:
    """(N, 10) of 0 and 1 -> the board's class: the highest set bit, 0 if there is none."""
    return (np.arange(10) * bits).max(axis=1)


def _signs(data: np.lib.npyio.NpzFile, layer: int) -> np.ndarray:
    """(outputs, fan-in) int8 of +-1."""
    fan_in = int(data[f"W{layer}_shape"][1])
    bits = np.unpackbits(data[f"W{layer}_bits"], axis=1, count=fan_in, bitorder="little")
    return 2 * bits.astype(np.int8) - 1


def _from_matches(threshold: np.ndarray, fan_in: int) -> np.ndarray:
    """``threshold < matches`` as ``sum >= result``: matches > T is matches >= T + 1, and sum = 2 matches - fan-in."""
    return 2 * (threshold.astype(np.int64) + 1) - fan_in


def _add_threshold(
    layers: list[Layer], arrays: dict[str, dict[str, np.ndarray]], i: int, threshold: np.ndarray
) -> None:
    layers.append(Threshold(name=f"threshold_{i}"))
    arrays[f"threshold_{i}"] = {"threshold": threshold, "direction": np.ones(len(threshold), np.int8)}
