"""Files of named arrays: plain zips of .npy, stored without compression and without a date.

Equal arrays are equal bytes.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.reading.archive import read_archive
from bitloom.golden.reading.file import naming

Array = NDArray[Any]


def array_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Content of a file that holds arrays by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for key, array in arrays.items():
            file.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(array))
    return out.getvalue()


def npy_bytes(array: Array) -> bytes:
    """Content of a .npy file that holds one array."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    return data.getvalue()


def read_arrays(path: str | Path, names: Sequence[str], *together: Sequence[str]) -> dict[str, Array]:
    """Read arrays of a file.

    Parameters
    ----------
    path
        The file.
    names
        Arrays that it must have.
    together
        Groups of arrays that it must have all or none of; the first one of a group tells.

    Returns
    -------
    dict
        Name -> array.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is no whole file of arrays of integers, or lacks an array. One line that begins with the path.
    """
    archive = read_archive(path)
    with naming(path):
        more = [name for group in together if group[0] in archive.arrays for name in group]
        return {name: archive.array(name) for name in (*names, *more)}
