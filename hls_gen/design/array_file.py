"""Files of named arrays: plain zips of .npy, without a date.

Equal arrays are equal bytes: nothing is compressed.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.names import shown
from bitloom.golden.reading.archive import Archive, listed, read_archive
from bitloom.golden.reading.file import naming


def array_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Content of a file that holds arrays by name, stored as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for key, array in arrays.items():
            member = zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0))
            file.writestr(member, npy_bytes(array), zipfile.ZIP_STORED)
    return out.getvalue()


def array_digest(arrays: Mapping[str, Array]) -> str:
    """SHA-256 of the names, dtypes, shapes and values of arrays, in their order, as 64 hexadecimal digits."""
    return digest_of(arrays.items())


def digest_of(arrays: Iterable[tuple[str, Array]]) -> str:
    """As `array_digest`, of arrays that need not be in memory together."""
    digest = hashlib.sha256()
    for name, array in arrays:
        digest.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


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
        Groups of arrays that it must have all or none of; the first one of a group tells. It may have no others.

    Returns
    -------
    dict
        Name -> array.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is no whole file of arrays of integers, lacks an array, or has another one. One line that begins with the
        path.
    """
    archive = read_archive(path)
    with naming(path):
        return arrays_of(archive, names, *together)


def arrays_of(archive: Archive, names: Sequence[str], *together: Sequence[str]) -> dict[str, Array]:
    """Arrays of an archive; parameters and ValueError are as of `read_arrays`, without a path."""
    return {name: archive.array(name) for name in names_of(archive, names, *together)}


def names_of(archive: Archive, names: Sequence[str], *together: Sequence[str]) -> list[str]:
    """Names of the arrays that `arrays_of` reads; ValueError if there are others."""
    known = {f"{name}.npy" for group in (names, *together) for name in group}
    foreign = [name for name in archive.names if name not in known]
    if foreign and f"{names[0]}.npy" in archive.names:  # else it is another kind of file, which is told below
        raise ValueError(f"must hold no arrays but {', '.join(sorted(known))}, got {listed(foreign)}")
    return [*names, *(name for group in together if group[0] in archive.arrays for name in group)]


def check_digest(digest: Array, content: str) -> None:
    """ValueError unless array ``digest`` of a file is that of its other arrays."""
    given = digest.tobytes().hex()
    if given != content:
        raise ValueError(f"the content's digest must be {shown(given)}, got {content!r}")
