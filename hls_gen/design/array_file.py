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

Array = NDArray[Any]


def array_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Content of a file that holds arrays by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for key, array in arrays.items():
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), data.getvalue())
    return out.getvalue()


def read_arrays(path: str | Path, names: Sequence[str], together: Sequence[str] = ()) -> dict[str, Array]:
    """Read arrays of a file.

    Parameters
    ----------
    path
        The file.
    names
        Arrays that it must have.
    together
        Arrays that it must have all or none of; the first one tells.

    Returns
    -------
    dict
        Name -> array.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    KeyError
        It lacks an array.
    zipfile.BadZipFile, ValueError, EOFError, NotImplementedError
        It is no whole file of arrays.
    """
    with zipfile.ZipFile(path) as file:
        more = together if together and f"{together[0]}.npy" in file.namelist() else ()
        return {name: _array(file, name) for name in (*names, *more)}


def first_line(error: BaseException) -> str:
    """First line of an error's message; the error's class where it has none."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
    return str(text).splitlines()[0] if str(text) else type(error).__name__


def _array(file: zipfile.ZipFile, name: str) -> Array:
    """One array of a file; KeyError if there is none of that name."""
    try:
        data = file.read(f"{name}.npy")
    except KeyError:
        raise KeyError(f"no array {name}") from None
    array: Array = np.load(io.BytesIO(data), allow_pickle=False)
    return array
