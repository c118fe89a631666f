"""The installed package as a wheel, so that a board gets the bitloom that made its files.

A wheel is a zip archive: the package's files, and a folder of metadata that the installed distribution has already
(https://packaging.python.org/specifications/binary-distribution-format). The same package gives the same bytes. Its
version has a local part, the digest of the package's files: 0.1.0+3f2a9c01b4de. So `pip list` on a board tells wheels
of two states of bitloom apart.
"""

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import bitloom
from bitloom.golden.distribution import DISTRIBUTION

EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file in the archive, the first one that a zip archive can say."""
SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
"""Folders that Python and Jupyter make."""
WRITTEN = ("notebooks", "boards")
"""Rooms in which a folder ``build`` is what notebooks and makefiles wrote there."""
LOCAL_DIGITS = 12
"""Digits of the package's digest in the wheel's version."""
WHEEL = "Wheel-Version: 1.0\nGenerator: bitloom\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel() -> tuple[str, bytes]:
    """The package that runs now as a wheel for any Python 3.

    Returns
    -------
    tuple
        The name of the wheel's file, and its content.

    Raises
    ------
    ValueError
        If the package wasn't installed, as its metadata are those that pip wrote.
    """
    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise ValueError(f"{DISTRIBUTION}: must be installed, as by pip install -e ., got a checkout alone") from None
    files = _files()
    version = f"{installed.version.partition('+')[0]}+{_digest_of(files)}"
    name = f"{DISTRIBUTION.replace('-', '_')}-{version}"
    about = f"{name}.dist-info"
    for text in ("entry_points.txt", "top_level.txt"):
        files[f"{about}/{text}"] = (installed.read_text(text) or "").encode()
    metadata = installed.read_text("METADATA") or installed.read_text("PKG-INFO") or ""  # an egg's have another name
    of_installed = f"\nVersion: {installed.version}\n"
    files[f"{about}/METADATA"] = metadata.replace(of_installed, f"\nVersion: {version}\n", 1).encode()
    files[f"{about}/WHEEL"] = WHEEL.encode()
    record = f"{about}/RECORD"
    lines = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path, data in files.items():
            info = zipfile.ZipInfo(path, EPOCH)
            info.external_attr = 0o644 << 16
            target.writestr(info, data, zipfile.ZIP_DEFLATED)
    return f"{name}-py3-none-any.whl", archive.getvalue()


@cache
def package_digest() -> str:
    """Digest of all files of the package that runs now, as the wheel's version has it: tells two states apart."""
    return _digest_of(_files())


def _digest_of(files: Mapping[str, bytes]) -> str:
    contents = "\n".join(f"{path} {_digest(data)}" for path, data in files.items())
    return hashlib.sha256(contents.encode()).hexdigest()[:LOCAL_DIGITS]


def _files() -> dict[str, bytes]:
    """Path in the wheel, and content, of each of the package's files."""
    return {f"bitloom/{path}": data for path, data in _walked(Path(bitloom.__path__[0]))}


def _walked(package: Path) -> Iterator[tuple[str, bytes]]:
    """Path below the package, and content, of each of its files; in a clone rooms are reached by links."""
    for folder, folders, names in os.walk(package, followlinks=True):
        here = Path(folder).relative_to(package)
        results = {"build"} if here.parts[:1] and here.parts[0] in WRITTEN else set()
        folders[:] = sorted(set(folders) - SKIPPED - results)
        for name in sorted(names):
            yield (here / name).as_posix(), (Path(folder) / name).read_bytes()


def _digest(data: bytes) -> str:
    """SHA-256 as RECORD has it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
