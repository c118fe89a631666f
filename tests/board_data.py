"""Records of a board of the trained networks cnv-w1a1 and lfc-w1a1, in the networks' own units, for every layer of
bitloom. The files are not part of this repository (golden/zoo says where they are looked for): where one is
absent, the test that asks for it is skipped.
"""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.golden.zoo.bnn_pynq import CIFAR, cnv_images, lfc_images

PHOTOGRAPHS = {"deer.jpg": "Deer", "car.png": "Automobile", "airplane.jpg": "Airplane", "bird.jpg": "Bird"}


@dataclass(frozen=True)
class Recording:
    """images : (N, H, W, C), the network's input.  labels : (N,), what they show.
    maps : layer name -> (N, H', W', C'), the output that was recorded of that layer; the last is the network's output.
    """

    images: np.ndarray
    labels: np.ndarray
    maps: dict[str, np.ndarray]

    @property
    def outputs(self) -> np.ndarray:
        """(N, 1, 1, 10): what the network must give."""
        return list(self.maps.values())[-1]


def file(name: str) -> Path:
    """Path of a recorded or trained file; skips the test where it is absent."""
    path = networks.data_folder() / name
    if not path.exists():
        pytest.skip(f"recorded board data are absent: {path} (set BITLOOM_DATA to their folder)")
    return path


def trained(name: str) -> Model:
    """The network with its trained weights; skips the test where they are absent."""
    file(networks.READ[name][1])
    return networks.load(name)


def photographs() -> Recording:
    """CNV: 4 photographs, with the sums of dense_8 that an Ultra96 board recorded."""
    data = np.load(file("cnvW1A1_cifar10_golden.npz"))
    labels = np.array([CIFAR.index(PHOTOGRAPHS[name]) for name in data["board_names"].tolist()])
    scores = _sums(data["board_scores_recorded_on_Ultra96"], 512)
    return Recording(cnv_images(data["board_images"]), labels, {"dense_8": scores})


def cifar() -> Recording:
    """CNV: 16 test images of CIFAR-10, with each layer's output after threshold and pool, and the sums of dense_8."""
    data = np.load(file("cnvW1A1_cifar10_golden.npz"))
    names = [f"pool_{i}" if i in (1, 3) else f"threshold_{i}" for i in range(8)]
    maps = {name: _signs(data[f"act{i}"]) for i, name in enumerate(names)}
    return Recording(cnv_images(data["images"]), data["labels"], {**maps, "dense_8": _sums(data["scores"], 512)})


def mnist() -> Recording:
    """LFC: 256 test images of MNIST, with the sums of dense_3 and the bits of threshold_3."""
    data = np.load(file("lfcW1A1_mnist_golden.npz"))
    maps = {"dense_3": _sums(data["acc"], 1024), "threshold_3": _signs(data["out_bits"])}
    return Recording(lfc_images(data["images"]), data["labels"], maps)


def mnist_test() -> tuple[np.ndarray, np.ndarray]:
    """LFC: all 10,000 test images of MNIST and their labels; their outputs are not recorded."""
    with gzip.open(file("t10k-images-idx3-ubyte.gz")) as f:
        pixels = np.frombuffer(f.read(), np.uint8, offset=16).reshape(10000, 784)
    with gzip.open(file("t10k-labels-idx1-ubyte.gz")) as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)
    return lfc_images(pixels), labels


def _map(values: np.ndarray) -> np.ndarray:
    """(N, ..., C) -> (N, H, W, C)."""
    return values if values.ndim == 4 else values.reshape(len(values), 1, 1, -1)


def _signs(bits: np.ndarray) -> np.ndarray:
    """0 and 1 -> -1 and +1."""
    return _map(2 * bits.astype(np.int64) - 1)


def _sums(matches: np.ndarray, fan_in: int) -> np.ndarray:
    """Numbers of XNOR matches -> sums of ``fan_in`` products of +-1."""
    return _map(2 * matches.astype(np.int64) - fan_in)
