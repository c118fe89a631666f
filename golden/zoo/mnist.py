"""Ten thousand handwritten digits of 28 x 28 pixels, MNIST's test images, where their files are.

They are not part of this repository: `bitloom.golden.zoo.data_folder` says where they are looked for.
"""

import gzip
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import Array

IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
HEADERS = {IMAGES: 16, LABELS: 8}
"""Bytes before the data."""
COUNT, SIDE = 10_000, 28


def load_mnist(folder: Path) -> tuple[Array, Array]:
    """Read the images.

    Parameters
    ----------
    folder : Path

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
        If a file has another size than MNIST's.
    """
    found = {}
    for name, shape in ((IMAGES, (COUNT, SIDE, SIDE, 1)), (LABELS, (COUNT,))):
        path = folder / name
        if not path.exists():
            raise FileNotFoundError(f"mnist: {name} is not in {folder} (set BITLOOM_DATA to its folder)")
        data = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)[HEADERS[name] :]
        if data.size != np.prod(shape):
            raise ValueError(f"{path}: must hold {int(np.prod(shape))} bytes of data, got {data.size}")
        found[name] = data.reshape(shape)
    return found[IMAGES], found[LABELS].astype(np.int64)
