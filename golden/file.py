"""One file for a network and its arrays: ``name.npz``, a plain zip that numpy and unzip can read.

Members, stored without compression, in this order:

* ``bitloom.json``: {"format": "bitloom model", "version": 1, "digest": "...", "network": Network.to_dict()}
* ``<layer>.<array>.npy`` for each array, in the order of the layers: npy format 1.0, row-major, in the smallest
  little-endian integer dtype that holds its values; real weights that are no integers as ``<f4`` where these hold
  them exactly, else as ``<f8``.

The same model gives the same bytes, on every machine and with every version of numpy and zlib: therefore there is no
compression, no date, and the npy headers are written here (numpy's own padding changed with 1.23). The digest
depends on the model alone, not on the dtypes that its arrays happen to have in memory.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from bitloom.golden.names import shown
from bitloom.golden.reading.archive import Archive, listed, read_archive
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import parse_json

from .atomic import write_bytes
from .encoding import Array
from .network import Model, Network

FORMAT = "bitloom model"
VERSION = 1
HEADER = "bitloom.json"
DTYPES = tuple(np.dtype(t) for t in ("|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"))
"""Dtypes of stored arrays of integers, in the order in which they are tried."""
REAL_DTYPES = tuple(np.dtype(t) for t in ("<f4", "<f8"))
"""The same of arrays of real numbers."""


def model_digest(model: Model) -> str:
    """SHA-256 of a model, as 64 hexadecimal digits.

    It is taken of the network's canonical JSON and of the name, dtype, shape and bytes of each array, as stored.
    """
    digest = hashlib.sha256(_canonical_json(model.network.to_dict()))
    for name, array in _stored_arrays(model):
        digest.update(_canonical_json([name, array.dtype.str, list(array.shape)]))
        digest.update(array.tobytes())
    return digest.hexdigest()


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, in one step: a process that is killed leaves the old file.

    Parameters
    ----------
    model : Model
    path : path
        The file; if it exists, it is replaced.

    Raises
    ------
    OSError
        If the file can't be written.
    """
    write_bytes(path, to_bytes(model))


def to_bytes(model: Model) -> bytes:
    """Content of the file that `save` writes: the same model gives the same bytes."""
    header = {"format": FORMAT, "version": VERSION, "digest": model_digest(model), "network": model.network.to_dict()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, HEADER, _canonical_json(header))
        for name, array in _stored_arrays(model):
            _add(archive, f"{name}.npy", _npy(array))
    return out.getvalue()


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If the file is cut off, foreign, of another version, or if its content is not what was saved. The message is
        one line, ``path: rule, got value``.
    """
    archive = read_archive(path)
    with naming(path):
        return _model(archive)


def from_bytes(data: bytes) -> Model:
    """Read what `to_bytes` made; ValueError as `load`, without a path."""
    return _model(Archive(data))


def _model(archive: Archive) -> Model:
    if HEADER not in archive.names:
        raise ValueError(f"must be a model file, with a member {HEADER}, got {listed(archive.names)}")
    for name in archive.compressed:
        raise ValueError(f"members must be stored without compression and encryption, got {name!r}")
    names = archive.names
    header = _header(archive.read(HEADER))
    network = Network.from_dict(header["network"])
    shapes = {
        f"{layer.name}.{array}": shape
        for layer in network.layers
        for array, shape in sorted(layer.array_shapes_of(network.sources(layer)).items())
    }
    expected = [HEADER, *(f"{name}.npy" for name in shapes)]
    if names != expected:
        raise ValueError(f"members must be {listed(expected)}, got {listed(names)}")
    arrays: dict[str, dict[str, Array]] = {}
    for name, shape in shapes.items():
        layer_name, array_name = name.split(".")
        arrays.setdefault(layer_name, {})[array_name] = _array(name, shape, archive.read(f"{name}.npy"))
    model = Model(network, arrays)
    if model_digest(model) != header["digest"]:
        raise ValueError(f"the content's digest must be {header['digest']!r}, got {model_digest(model)!r}")
    return model


def _header(text: bytes) -> dict[str, Any]:
    """The checked content of the member HEADER."""
    header = parse_json(text, HEADER)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        got = header.get("format") if isinstance(header, dict) else header
        raise ValueError(f"{HEADER}: format must be {FORMAT!r}, got {shown(got)}")
    if header.get("version") != VERSION:
        raise ValueError(f"{HEADER}: version must be {VERSION}, got {shown(header.get('version'))}")
    if set(header) != {"format", "version", "digest", "network"}:
        raise ValueError(f"{HEADER}: keys must be digest, format, network, version, got {listed(sorted(header))}")
    return header


def _array(name: str, shape: tuple[int, ...], data: bytes) -> Array:
    """The array in an npy member, which must be one that `save` writes, of this shape."""
    for dtype in (*DTYPES, *REAL_DTYPES):
        head = _npy_header(dtype, shape)
        if data.startswith(head):
            size = len(data) - len(head)
            needed = dtype.itemsize * math.prod(shape)
            if size != needed:
                raise ValueError(f"{name}: an array of shape {shape} needs {needed} bytes, got {size}")
            return np.frombuffer(data, dtype, offset=len(head)).reshape(shape)
    raise ValueError(f"{name}: must be an npy array of numbers of shape {shape}, got header {data[:128]!r}")


def _stored_arrays(model: Model) -> Iterator[tuple[str, Array]]:
    """("layer.array", array in the dtype in which it is stored) in the order of the file."""
    for layer in model.network.layers:
        for key in sorted(layer.array_shapes_of(model.network.sources(layer))):
            array = model.arrays[layer.name][key]
            yield f"{layer.name}.{key}", np.ascontiguousarray(array.astype(_stored_dtype(array)))


def _stored_dtype(array: Array) -> "np.dtype[Any]":
    """The smallest dtype in which an array is stored that holds its values."""
    if array.dtype.kind == "f" and not ((array == np.rint(array)) & (np.abs(array) < 2.0**63)).all():
        with np.errstate(over="ignore", under="ignore"):
            return next(d for d in REAL_DTYPES if (array.astype(d) == array).all())
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    return next(d for d in DTYPES if np.iinfo(d).min <= low and high <= np.iinfo(d).max)


def _npy(array: Array) -> bytes:
    return _npy_header(array.dtype, array.shape) + array.tobytes()


def _npy_header(dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> bytes:
    """Header of npy format 1.0: magic, length, a Python literal, padded with blanks to a multiple of 64 bytes."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.encode().ljust(length - 1) + b"\n"


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # else it says on which system the file was made
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def _canonical_json(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
