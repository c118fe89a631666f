"""A folder of pictures by class: FOLDER/CLASS/*.png. Needs Pillow.

Pictures are read when they are needed, so a folder may be of any size. They come in turn, the first one of each class,
then the second ones, so that the first N are of all classes.
"""

import io
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from pathlib import Path

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array
from bitloom.golden.limits import check_read
from bitloom.golden.names import check_classes, shown
from bitloom.golden.network import Network
from bitloom.golden.reading.archive import listed
from bitloom.golden.reading.file import foreign_reason, naming, read_file

NO_PILLOW = f"pictures need Pillow: {pip_install('explore')}"
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "BMP", "PPM")
"""Formats that Pillow may read: each is simple, and none refers to other files."""
CHANNELS = {"1": 1, "L": 1, "P": 3, "RGB": 3}
"""Channels of a picture by Pillow's name of its pixels; others have transparency, inks or 16 bits."""
MODES = {1: "L", 3: "RGB"}
BYTES_PER_PIXEL = 8
"""Bytes that a pixel takes at most while a picture is read: four, and as many again for a conversion."""


@dataclass(frozen=True)
class Pictures:
    """Pictures in a folder."""

    name: str
    """The folder."""
    files: tuple[Path, ...]
    """N paths."""
    labels: Array
    """(N,) int64."""
    classes: tuple[str, ...]
    """Name of each class: of the network's, or of the folder's where the network has none."""
    shape: tuple[int, int, int]
    """Height, width and channels of the network's input."""
    resize: bool
    """Whether pictures of another size are brought to this one."""

    def pixels(self, begin: int, end: int) -> Array:
        """Pictures ``begin`` to ``end``.

        Raises
        ------
        OSError, ValueError
            As `read_picture`.
        """
        return np.stack([read_picture(path, self.shape, self.resize) for path in self.files[begin:end]])


def pictures(folder: Path, network: Network, resize: bool = False) -> Pictures:
    """The pictures in a folder, whose folders are classes.

    Parameters
    ----------
    folder
        Holds a folder for each class, and these hold pictures with ENDINGS. What begins with a point is left aside.
    network
        Whose input the pictures are for. If its outputs have names, each folder must have one of them, capital letters
        or not. If not, there must be a folder for each output, whose names are the outputs' numbers, or come in the
        outputs' order when they are sorted.
    resize
        Whether pictures of another size are brought to the input's, bilinearly.

    Raises
    ------
    ImportError
        If Pillow is missing.
    ValueError
        If the folder holds something else, or no picture.
    """
    check_pillow()
    files = {path.name: _files(path) for path in _visible(folder)}
    numbers = _numbers(folder, sorted(files), network)
    in_order = sorted(numbers.items(), key=lambda item: item[1])
    rounds = zip_longest(*([(path, number) for path in files[name]] for name, number in in_order))
    pairs = [pair for pairs in rounds for pair in pairs if pair is not None]
    if not pairs:
        raise ValueError(f"{folder}: must hold folders of pictures, a folder for each class, got no picture")
    labels = np.array([number for _, number in pairs], np.int64)
    by_number = {number: name for name, number in numbers.items()}
    classes = network.classes or tuple(by_number[number] for number in range(network.output.channels))
    check_classes(str(folder), classes, network.output.channels)  # a folder's name may hold what steers a terminal
    return Pictures(str(folder), tuple(path for path, _ in pairs), labels, classes, network.input.shape, resize)


def check_pillow() -> None:
    """Check that pictures can be read; ImportError if Pillow is missing."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise ImportError(NO_PILLOW) from None


def _visible(folder: Path) -> list[Path]:
    """Files and folders in a folder, sorted, without those whose names begin with a point."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    """The pictures of a class."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: must be a folder of pictures, the class's name its own, got a file")
    files = _visible(folder)
    for path in files:
        if path.suffix.lower() not in ENDINGS:
            raise ValueError(f"{path}: must be a picture, {', '.join(ENDINGS)}, got {shown(path.suffix)}")
    return files


def _numbers(folder: Path, names: list[str], network: Network) -> dict[str, int]:
    """The output that each folder is for."""
    outputs = network.output.channels
    if network.classes:
        exact = {name: number for number, name in enumerate(network.classes)}
        lower = {name.lower(): number for number, name in enumerate(network.classes)}
        numbers = {name: exact.get(name, lower.get(name.lower(), -1)) for name in names}
        return _checked(folder, numbers, f"one of {network.name}'s classes, {listed(list(network.classes))}")
    if set(names) == {str(number) for number in range(outputs)}:
        return {str(number): number for number in range(outputs)}
    if len(names) != outputs:
        raise ValueError(
            f"{folder}: must hold {outputs} folders, one for each output of {network.name}, got {len(names)}"
        )
    return {name: number for number, name in enumerate(names)}


def _checked(folder: Path, numbers: Mapping[str, int], rule: str) -> dict[str, int]:
    """The numbers; ValueError where a folder has none, or that of another folder."""
    seen: dict[int, str] = {}
    for name, number in numbers.items():
        if number < 0:
            raise ValueError(f"{folder}: each folder must be {rule}, got {shown(name)}")
        if number in seen:
            raise ValueError(f"{folder}: each class must have one folder, got {shown(seen[number])} and {shown(name)}")
        seen[number] = name
    return dict(numbers)


def read_picture(path: Path, shape: tuple[int, int, int], resize: bool = False) -> Array:
    """Read a picture.

    Parameters
    ----------
    path
        A PNG, JPEG, BMP, PGM or PPM.
    shape
        Height, width and channels that it must have: 1, grey, or 3, RGB. With height and width 1 it may have any with
        so many values.
    resize
        Whether a picture of another height or width is brought to these, bilinearly.

    Returns
    -------
    array
        ``shape``, uint8.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is damaged, has another shape, or needs more memory than `bitloom.golden.limits` allow. One line that
        begins with the path.
    """
    data = read_file(path)
    with naming(os.fspath(path)):
        return _decoded(data, shape, resize)


def _decoded(data: bytes, shape: tuple[int, int, int], resize: bool) -> Array:
    """The picture in a file's content."""
    from PIL import Image

    with _decoding(data):
        image = Image.open(io.BytesIO(data), formats=FORMATS)  # reads the header, no pixels
    channels = CHANNELS.get(image.mode)
    if channels is None:
        raise ValueError(f"must be grey or RGB of 8 bits without transparency, got mode {shown(image.mode)}")
    got = (image.height, image.width, channels)
    resizable = resize and channels == shape[2]
    if got != shape and not resizable and not (shape[:2] == (1, 1) and prod(got) == prod(shape)):
        raise ValueError(f"must have shape {shape}, as the network's input, got {got}")
    check_read("its pixels", BYTES_PER_PIXEL * image.width * image.height, len(data))
    with _decoding(data):
        pixels = image.convert(MODES[channels])
    if resizable:
        pixels = pixels.resize((shape[1], shape[0]), Image.Resampling.BILINEAR)
    return np.asarray(pixels, np.uint8).reshape(shape)


@contextmanager
def _decoding(data: bytes) -> Iterator[None]:
    """Exceptions of Pillow's readers for a damaged file become one ValueError.

    Pillow's own limit of pixels is off, as ours is looked at between the header and the pixels.
    """
    from PIL import Image, UnidentifiedImageError

    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what Pillow repairs or passes over
            yield
    except UnidentifiedImageError:
        begin = shown(data[:8])
        raise ValueError(f"must be a whole PNG, JPEG, BMP, PGM or PPM, got a file that begins with {begin}") from None
    except Exception as e:
        raise ValueError(f"must be a whole PNG, JPEG, BMP, PGM or PPM, got: {foreign_reason(e)}") from None
    finally:
        Image.MAX_IMAGE_PIXELS = before
