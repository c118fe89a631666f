"""Images of the notebook of CNV: photographs of CIFAR-10 where they are, else handwritten digits."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.golden.zoo import bnn_pynq
from bitloom.golden.zoo.cnv_digits import cnv_digits, digit_pixels

RECORDED = "cnvW1A1_cifar10_golden.npz"
"""File of photographs and a board's answers, beside the trained weights (docs/how-to/data.md)."""
SHOWN = ("Deer", "Automobile", "Airplane", "Bird")
"""Classes of the four photographs that the board has computed."""
FRAMES = 20


@dataclass(frozen=True)
class CnvExample:
    """CNV with trained weights, and images that it knows."""

    model: Model
    """The network."""
    pixels: np.ndarray
    """(N, 32, 32, 3) uint8."""
    labels: np.ndarray
    """(N,) numbers of classes."""
    photographs: bool
    """Whether the images are those of CIFAR-10, not digits."""
    recorded: np.ndarray | None
    """(M, 10): for the first M images, how many of the 512 products are +1 by a board; None: no board has computed
    them."""

    @property
    def images(self) -> np.ndarray:
        """(N, 32, 32, 3) int8, as CNV takes them."""
        return bnn_pynq.cnv_images(self.pixels)

    def __str__(self) -> str:
        kind = "photographs" if self.photographs else "handwritten digits, enlarged"
        return f"{self.model.network.name}: {len(self.pixels)} {kind}"


def cnv_example(digits: Mapping[str, np.ndarray]) -> CnvExample:
    """CNV as it is in ``data_folder``, with the photographs beside it; without both, trained on digits here and now.

    Parameters
    ----------
    digits
        Arrays train_images, train_labels, test_images and test_labels, as in digits.npz.
    """
    path = networks.data_folder() / RECORDED
    if not path.exists() or not networks.source("cnv-w1a1").startswith("trained"):
        model = cnv_digits(digits["train_images"], digits["train_labels"])
        labels = digits["test_labels"][:FRAMES].astype(np.int64)
        return CnvExample(model, digit_pixels(digits["test_images"][:FRAMES]), labels, photographs=False, recorded=None)
    with np.load(path, allow_pickle=False) as file:
        pixels = file["images"]
        labels = file["labels"]
        recorded = None
        if "board_images" in file:
            shown = [bnn_pynq.CIFAR.index(name) for name in SHOWN]
            pixels = np.concatenate([file["board_images"], pixels])
            labels = np.concatenate([shown, labels])
            recorded = file["board_scores_recorded_on_Ultra96"]
    return CnvExample(networks.load("cnv-w1a1"), pixels, labels.astype(np.int64), photographs=True, recorded=recorded)
