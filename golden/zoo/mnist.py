"""Ten thousand handwritten digits of 28 x 28 pixels, MNIST's test images, where their files are.

They are not part of this repository: `bitloom.golden.zoo.data_folder` says where they are looked for.
"""

from pathlib import Path

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.reading.idx import read_idx

IMAGES = "t10k-images-idx3-ubyte.gz"
LABELS = "t10k-labels-idx1-ubyte.gz"
COUNT = 10_000
SIDE = 28


def load_mnist(folder: Path) -> tuple[Array, Array]:
    """Read the images.

    Returns
    -------
    (10000, 28, 28, 1) uint8
        Grey values 0 (paper) to 255 (ink).
    (10000,) int64
        Labels 0 to 9.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If a file is damaged, or holds an array of another shape than MNIST's.
    """
    arrays = {}
    for name, shape in ((IMAGES, (COUNT, SIDE, SIDE)), (LABELS, (COUNT,))):
        path = folder / name
        if not path.exists():
            raise FileNotFoundError(f"mnist: {name} is not in {folder} (set BITLOOM_DATA to its folder)")
        array = read_idx(path)
        if array.shape != shape:
            raise ValueError(f"{path}: must hold an array of shape {shape}, got {array.shape}")
        arrays[name] = array
    return arrays[IMAGES][..., None], arrays[LABELS].astype(np.int64)
