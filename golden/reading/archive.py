"""Zip archives of arrays (npz), whose members are measured before one is unpacked."""

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from bitloom.golden.encoding import Array
from bitloom.golden.limits import check_read
from bitloom.golden.names import printable, shown

from .file import foreign_reason, naming, read_file
from .npy import parse_npy

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression that is taken. zipfile unpacks the others in pieces of any size."""
FLAG_ENCRYPTED = 1


class Archive:
    """A zip archive in memory, checked when it is made; every member's checksum is checked when it is read.

    Parameters
    ----------
    data : bytes
        The file's content.

    Attributes
    ----------
    names : list of str
        Names of the members, in their order.

    Raises
    ------
    ValueError
        If it is no whole zip archive, has a member twice, encrypted or compressed in an unusual way, or needs more
        memory than `bitloom.golden.limits` allow. One line that begins with ``must``.
    """

    def __init__(self, data: bytes) -> None:
        with _unpacking():
            self._file = zipfile.ZipFile(io.BytesIO(data))
        members = self._file.infolist()
        self.names = [member.filename for member in members]
        seen: set[str] = set()
        for member in members:
            if member.filename in seen:
                raise ValueError(f"must have every member once, got {shown(member.filename)} twice")
            seen.add(member.filename)
            if member.compress_type not in METHODS or member.flag_bits & FLAG_ENCRYPTED:
                raise ValueError(f"must be stored or deflated, without encryption, got {shown(member.filename)}")
        # Twice: a member's bytes, and the array that is made of them.
        check_read("its members", 2 * sum(member.file_size for member in members), len(data))

    @property
    def compressed(self) -> list[str]:
        """Names of the members that are not simply stored."""
        return [member.filename for member in self._file.infolist() if member.compress_type != zipfile.ZIP_STORED]

    def read(self, name: str) -> bytes:
        """Content of a member.

        Raises
        ------
        ValueError
            If there is none, or it is damaged.
        """
        if name not in self.names:
            raise ValueError(f"must hold {name}, got {listed(self.names)}")
        with _unpacking():
            return self._file.read(name)

    def array(self, name: str, kinds: str = "biu") -> Array:
        """The array in member ``name``.npy, of one of ``kinds``; see `parse_npy`.

        Raises
        ------
        ValueError
            If there is none, or it is another. The message names the array.
        """
        data = self.read(f"{name}.npy")
        with naming(name):
            return parse_npy(data, kinds)

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays."""
        return [name.removesuffix(".npy") for name in self.names if name.endswith(".npy")]


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """Read a zip archive.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        As `Archive`, with the path in front.
    """
    data = read_file(path)
    with naming(os.fspath(path)):
        return Archive(data)


def listed(names: list[str]) -> str:
    """Names as messages show them: six at most, and none longer than SHOWN characters."""
    short = [*map(printable, names[:6])]
    return ", ".join(short) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "no member"


@contextmanager
def _unpacking() -> Iterator[None]:
    """Each exception of zipfile becomes a ValueError of one line."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
        struct.error,
        LookupError,
        OverflowError,
    ) as e:
        raise ValueError(f"must be a whole, unchanged zip archive, got: {foreign_reason(e)}") from None
