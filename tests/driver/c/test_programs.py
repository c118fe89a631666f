"""C and C++ programs in processes of their own: the example, the wrapper, and both at once on one board."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.c import FOLDER
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from tests.simulated import overlay

from .bench import on_board
from .compiled import C99, CORE, WARNINGS, build, compiler
from .piped import HERE, Process

PIPED = [*CORE, HERE / "piped_board.c"]


class Files:
    """A board with a design, the files that a user of the C side has, and what golden says of the images."""

    def __init__(self, folder: Path, board) -> None:
        reference = REFERENCE_DESIGNS["digits-cnn"]
        (model,) = reference.models()
        bit, manifest = overlay(reference.design("digits-cnn", [model]))
        program = compile_model(model, manifest)
        images = random_images(model.network, 5, 1)
        self.board = board
        self.classes = program.classify(model.forward(images)).tolist()
        self.words = [bit.with_suffix(".manifest.json"), folder / "digits.program.npz", folder / "images.bin"]
        program.save(self.words[1])
        self.words[2].write_bytes(images.astype(np.uint8).tobytes())


@pytest.fixture
def files(tmp_path):
    reference = REFERENCE_DESIGNS["digits-cnn"]
    bit, _ = overlay(reference.design("digits-cnn", reference.models()))
    with on_board(bit) as board:
        yield Files(tmp_path, board)


def example() -> Path:
    return build("classify", [FOLDER / "main.c", *PIPED], *C99, "-O1")


def wrapped(folder: Path, standard: str = "c++11") -> Path:
    """wrapped.cpp; the core is compiled as C beside it."""
    objects = []
    for source in PIPED:
        objects.append(folder / f"{source.stem}.o")
        command = [*compiler(*C99), *C99, f"-I{FOLDER}", "-c", source, "-o", objects[-1]]
        subprocess.run(command, check=True)
    program = folder / "wrapped"
    flags = [f"-std={standard}", *WARNINGS]
    command = [*compiler(*flags, cpp=True), *flags, f"-I{FOLDER}", HERE / "wrapped.cpp", *objects, "-o", program]
    subprocess.run(command, check=True)
    return program


def test_the_example(files):
    code, out, err = Process(files.board, [example(), *files.words]).finished()
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{i}: {number} {number}" for i, number in enumerate(files.classes)]


def test_the_example_takes_pixels(files):
    """Each 3 more than the value that it stands for."""
    images = files.words[-1]
    images.write_bytes(bytes(value + 3 for value in images.read_bytes()))
    code, out, err = Process(files.board, [example(), *files.words], "minus:3").finished()
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{i}: {number} {number}" for i, number in enumerate(files.classes)]


def test_the_example_tells_what_is_wrong(files, tmp_path):
    manifest, program, images = files.words

    def refused(words):
        code, out, err = Process(files.board, [example(), *words]).finished()
        assert (code, out) == (1, "")
        return err

    none = tmp_path / "none.npz"
    assert refused([manifest, none, images]) == f"{none}: must be readable, got: No such file or directory\n"
    assert refused([manifest, tmp_path, images]) == f"{tmp_path}: must be a file of at most 2 GB, got another\n"
    program.write_bytes(program.read_bytes()[:-1])
    assert refused(files.words) == f"{program}: must be a whole, unchanged zip archive, got none\n"
    done = subprocess.run([example()], capture_output=True, text=True, check=False)
    words = "MANIFEST PROGRAM IMAGES [CORE [DMA [MEMORY [TRANSFORM]]]]"
    assert (done.returncode, done.stderr) == (2, f"usage: {example()} {words}\n")


@pytest.mark.parametrize("standard", ["c++11", pytest.param("c++17", marks=pytest.mark.slow)])
def test_the_wrapper(files, tmp_path, standard):
    process = Process(files.board, [wrapped(tmp_path, standard), *files.words])
    assert process.line() == "digits-cnn"
    classes = " ".join(map(str, files.classes))
    process.say("go")
    assert process.line() == f"{classes} 50 10"
    process.say("cut")
    assert process.line() == "images must have 64 numbers each, got 319"
    process.say("end")
    assert process.finished() == (0, "", "")


@pytest.mark.slow
def test_cmake(tmp_path):
    """The CMake file builds both libraries and the example."""

    if shutil.which("cmake") is None:
        pytest.skip("CMake is needed, got none")
    compiler(*C99)
    for command in (["cmake", "-S", FOLDER, "-B", tmp_path], ["cmake", "--build", tmp_path]):
        subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "classify").is_file()
    assert (tmp_path / "libbitloom.a").is_file()
