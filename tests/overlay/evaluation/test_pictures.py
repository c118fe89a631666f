"""Folders of pictures by class: formats, classes, sizes; what isn't a fitting picture is refused in one line."""

import re
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitloom.overlay.evaluation.data import labelled_images
from bitloom.overlay.evaluation.pictures import NO_PILLOW, pictures, read_picture
from tests.errors import value_error

from .networks import network

GREY = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
COLOUR = np.random.default_rng(1).integers(0, 256, (2, 3, 3), np.uint8)
NET = network(classes=("Cat", "dog", "7"))


def write(path: Path, pixels: np.ndarray, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.mark.parametrize("ending", [".png", ".bmp", ".ppm"])
def test_colour_pictures_keep_every_value(ending, tmp_path):
    np.testing.assert_array_equal(read_picture(write(tmp_path / f"a{ending}", COLOUR), (2, 3, 3)), COLOUR)


def test_jpeg_palette_and_single_bits(tmp_path):
    path = write(tmp_path / "a.jpg", np.full((2, 3), 90, np.uint8), quality=100)
    assert abs(read_picture(path, (2, 3, 1)).astype(int) - 90).max() <= 2
    Image.fromarray(COLOUR).quantize(6).save(tmp_path / "p.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "p.png", (2, 3, 3)), COLOUR)
    Image.fromarray(GREY > 100).save(tmp_path / "b.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "b.png", (2, 3, 1))[..., 0], 255 * (GREY > 100))


def test_resize_is_bilinear(tmp_path):
    """Twice as large, a step from 0 to 100 has the values of the two triangles over its pixels."""
    path = write(tmp_path / "a.png", np.array([[0, 100]], np.uint8))
    assert read_picture(path, (1, 4, 1), resize=True).ravel().tolist() == [0, 25, 75, 100]
    assert read_picture(path, (1, 2, 1), resize=True).ravel().tolist() == [0, 100]
    assert read_picture(path, (3, 2, 1), resize=True)[..., 0].tolist() == [[0, 100]] * 3


def test_pictures_come_in_turn_of_each_class(tmp_path):
    """Folders have the classes' names, capital letters or not; hidden files are left aside."""
    for at, name in enumerate(["cat/b.png", "cat/a.png", "cat/c.png", "DOG/z.png"]):
        write(tmp_path / name, np.full((2, 3), at, np.uint8))
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "cat" / ".hidden").write_bytes(b"x")
    images = pictures(tmp_path, NET)
    assert [path.name for path in images.files] == ["a.png", "z.png", "b.png", "c.png"]
    assert images.labels.tolist() == [0, 1, 0, 0]
    assert images.classes == ("Cat", "dog", "7")
    assert images.pixels(0, 4)[:, 0, 0, 0].tolist() == [1, 3, 0, 2]
    assert images.pixels(2, 3).shape == (1, 2, 3, 1)
    assert labelled_images(str(tmp_path), NET).labels.tolist() == [0, 1, 0, 0]


def test_a_folder_of_pictures_of_several_sizes(tmp_path):
    write(tmp_path / "cat" / "a.png", np.full((20, 10), 7, np.uint8))
    write(tmp_path / "dog" / "a.png", np.full((2, 3), 9, np.uint8))
    pixels = labelled_images(str(tmp_path), NET, resize=True).pixels(0, 2)
    assert pixels.tolist() == [[[[7]] * 3] * 2, [[[9]] * 3] * 2]
    with value_error(f"{tmp_path}/cat/a.png: must have shape (2, 3, 1), as the network's input, got (20, 10, 1)"):
        labelled_images(str(tmp_path), NET).pixels(0, 2)


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["one", "three", "two"], {"one": 0, "three": 1, "two": 2}),
        (["2", "0", "1"], {"0": 0, "1": 1, "2": 2}),
        (["1", "2", "10"], {"1": 0, "10": 1, "2": 2}),  # no outputs' numbers, so they are sorted as text
    ],
)
def test_without_names_folders_are_sorted(folders, labels, tmp_path):
    for name in folders:
        write(tmp_path / name / "a.png", GREY)
    images = pictures(tmp_path, network())
    assert {path.parent.name: int(label) for path, label in zip(images.files, images.labels)} == labels
    assert [labels[name] for name in images.classes] == [0, 1, 2]


def test_numbers_beyond_ten_are_numbers(tmp_path):
    for number in range(12):
        write(tmp_path / str(number) / "a.png", GREY)
    images = pictures(tmp_path, network(outputs=12))
    assert [path.parent.name for path in images.files] == [str(label) for label in images.labels]


@pytest.mark.parametrize(
    ("files", "net", "message"),
    [
        ([], NET, "{0}: must hold folders of pictures, a folder for each class, got no picture"),
        (["cat/"], NET, "{0}: must hold folders of pictures, a folder for each class, got no picture"),
        (["a.png"], NET, "{0}/a.png: must be a folder of pictures, the class's name its own, got a file"),
        (["cat/a.png", "bird/a.png"], NET, "{0}: each folder must be one of tiny's classes, Cat, dog, 7, got 'bird'"),
        (["cat/a.png", "Cat/a.png"], NET, "{0}: each class must have one folder, got 'Cat' and 'cat'"),
        (["cat/a.txt"], NET, "{0}/cat/a.txt: must be a picture, .png, .jpg, .jpeg, .bmp, .pgm, .ppm, got '.txt'"),
        (["cat/more/a.png"], NET, "{0}/cat/more: must be a picture, .png, .jpg, .jpeg, .bmp, .pgm, .ppm, got ''"),
        (
            ["a/a.png", "b/a.png", "\x1b[31m/a.png"],
            network(),
            "{0}: classes must be 1..100 printable characters, got '\\x1b[31m'",
        ),
        (["a/a.png", "b/a.png"], network(), "{0}: must hold 3 folders, one for each output of tiny, got 2"),
    ],
)
def test_what_is_refused_of_a_folder(files, net, message, tmp_path):
    for name in files:
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            write(tmp_path / name.replace(".txt", ".png"), GREY).rename(tmp_path / name)
    with value_error(message.format(tmp_path)):
        pictures(tmp_path, net)


def png(width: int, height: int, data: bytes) -> bytes:
    """A PNG of grey pixels that says it has this size."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def test_what_is_refused_of_a_picture(tmp_path):
    path = tmp_path / "a.png"

    def refused(message: str, **options):
        with value_error(f"{path}: {message}"):
            read_picture(path, (2, 3, 1), **options)

    write(path, GREY.T.copy())
    refused("must have shape (2, 3, 1), as the network's input, got (3, 2, 1)")
    write(path, COLOUR)
    refused("must have shape (2, 3, 1), as the network's input, got (2, 3, 3)")
    refused("must have shape (2, 3, 1), as the network's input, got (2, 3, 3)", resize=True)
    write(path, np.zeros((2, 3, 4), np.uint8))
    refused("must be grey or RGB of 8 bits without transparency, got mode 'RGBA'")
    write(path, GREY.astype(np.uint16))
    refused("must be grey or RGB of 8 bits without transparency, got mode 'I;16'")
    path.write_bytes(png(100_000, 100_000, b""))
    refused(
        "its pixels: MB of memory to read it must be <= 256 (environment variable BITLOOM_MAX_READ_MB sets another "
        "limit), got 76,294",
        resize=True,
    )
    Image.fromarray(GREY).save(path, "GIF")
    refused("must be a whole PNG, JPEG, BMP, PGM or PPM, got a file that begins with b'GIF87a\\x03\\x00'")
    path.write_bytes(png(3, 2, bytes(8))[:-30])
    refused("must be a whole PNG, JPEG, BMP, PGM or PPM, got a file that begins with b'\\x89PNG\\r\\n\\x1a\\n'")
    path.write_bytes(b"P5 3 2 255\n" + bytes(5))  # a PGM without its last pixel
    refused("must be a whole PNG, JPEG, BMP, PGM or PPM, got: image file is truncated (2 bytes not processed)")


def test_without_pillow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=rf"^{re.escape(NO_PILLOW)}\Z"):
        pictures(tmp_path, NET)
