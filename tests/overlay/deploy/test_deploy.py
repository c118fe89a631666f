"""bitloom deploy: what it writes is whole, runs on the virtual board, and is never for another design."""

import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import bitloom as bitloom_package
from bitloom.driver.c import files as c_files
from bitloom.golden import zoo
from bitloom.golden.kernels import packed
from bitloom.golden.zoo.digits import load_digits
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.array_file import array_bytes
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.deploy import wheel as wheels
from bitloom.overlay.deploy.deploy import deploy
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.platform.boards import BOARDS
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual import board as virtual_board
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.simulation_overlay import SUFFIXES
from tests.commands import call
from tests.errors import value_error
from tests.golden.layers.test_outputs import HEADS, three_heads

pytest.importorskip("pynq")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """digits-cnn, with sources for a board."""
    model = zoo.load("digits-cnn")
    design = size_memories("digits-cnn", [model], DIGITS)
    target = BoardTarget(board=BOARDS["Pynq-Z2"])
    return builds.build(tmp_path_factory.mktemp("build") / "digits", design, [model], target=target)


@pytest.fixture(scope="module")
def folder(build, tmp_path_factory):
    """A folder for a board, with the simulation overlay."""
    place = tmp_path_factory.mktemp("deploy") / "board"
    assert call("deploy", build.folder, "--to", place).exit_code == 0
    return place


def driver(folder: Path, *words: object, status: int = 0) -> str:
    """Output of driver.py, on standard output or, where it fails, as its error. It runs in this process, which has
    imported PYNQ; what a process does is tested below."""
    boards = []
    status_or_error = None
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as told,
    ):
        patch.setattr(virtual_board, "activate", lambda: boards.append(activate()))
        patch.setattr(sys, "argv", [str(folder / "driver.py"), *map(str, words)])
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            status_or_error = end.code
    for board in boards:
        board.close()
    if isinstance(status_or_error, str):
        assert status == 1
        return f"{status_or_error}\n"
    assert status_or_error == status, (printed.getvalue(), told.getvalue())
    return told.getvalue() if status == 2 else printed.getvalue()


def with_bitstream(build: builds.Build, names: list[str]) -> list[Path]:
    """Files as Vivado would leave them in ``output``, the last one the newest: copies of the simulation's, with a .bit
    that doesn't say that it is one."""
    output = build.sources / "output"
    output.mkdir()
    bits = []
    for age, name in enumerate(reversed(names)):
        for suffix in (*SUFFIXES, ".bit"):
            source = build.bit.with_name(build.bit.name.removesuffix(".bit") + suffix)
            shutil.copy(source, output / f"{name}{suffix}")
        (output / f"{name}.bit").write_bytes(b"configuration data")
        os.utime(output / f"{name}.bit", (1e9 - age, 1e9 - age))
        bits.append(output / f"{name}.bit")
    return bits


@pytest.fixture
def own_build(build, tmp_path):
    """A copy of the build, which a test may change."""
    shutil.copytree(build.folder, tmp_path / "own")
    return builds.load(tmp_path / "own")


def test_checksums_are_those_of_all_files(folder):
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    listed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert "networks.json" in listed
    assert {path.name for path in folder.iterdir()} == {*listed, "SHA256SUMS", "deploy.json"}


def test_every_bit_is_goldens_on_the_virtual_board(folder):
    command = [sys.executable, "-W", "ignore", str(folder / "driver.py"), "--check", "--virtual"]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"digits-cnn: 4 of 4 images are golden's in every bit; 1,358 cycles a frame, [\d,]+ frames a second with the "
        r"driver\n",
        done.stdout,
    )


def test_cycles_of_partitions_are_added_up(tmp_path):
    """A frame takes those of both programs, each of which counts it as a frame."""
    model = zoo.load("digits-cnn")
    choices = CompileChoices(partitions={"conv_2": 1})
    build = builds.build(
        tmp_path / "build", size_memories("digits-cnn", [model], DIGITS, choices), [model], choices=choices
    )
    assert deploy(build, tmp_path / "board", with_c=True).not_in_c == ()
    said = re.search(r"([\d,]+) cycles a frame", driver(tmp_path / "board", "--check", "--virtual"))
    assert int(said[1].replace(",", "")) >= build.program("digits-cnn").ideal_cycles


def test_a_wrong_bit_is_told(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "board")
    known = dict(np.load(folder / "digits-cnn.check.npz"))
    known["outputs"][1, 0, 0, 3] += 1
    (tmp_path / "board" / "digits-cnn.check.npz").write_bytes(array_bytes(known))
    said = driver(tmp_path / "board", "--check", "--virtual", status=1)
    assert said.startswith("digits-cnn: 3 of 4 images are golden's in every bit")


def test_classes_and_outputs_of_images(folder, tmp_path):
    images = load_digits().test_images[:5]
    np.save(tmp_path / "images.npy", images)
    model = zoo.load("digits-cnn")
    outputs = packed.forward(model, images)
    driver(folder, tmp_path / "images.npy", "--virtual", "--outputs", "--out", tmp_path / "outputs.npy")
    assert (np.load(tmp_path / "outputs.npy") == outputs).all()
    said = driver(folder, tmp_path / "images.npy", "--virtual")
    assert json.loads(said) == outputs.reshape(5, -1).argmax(axis=1).tolist()


def test_wrong_images_are_refused_in_one_line(folder, tmp_path):
    np.save(tmp_path / "images.npy", np.zeros((2, 9, 8, 1), np.int64))
    said = driver(folder, tmp_path / "images.npy", "--virtual", status=1)
    rule = "digits-cnn: images must have shape (N, 8, 8, 1), got (2, 9, 8, 1)"
    assert said == f"driver.py: {tmp_path / 'images.npy'}: {rule}\n"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ((), "give a file of images, or --check"),
        (("--check", "--out", "x.npy"), "--transform, --outputs and --out are for a file of images, got --check"),
        (("images.npy", "--out", "no/x.npy"), "--out: must lie in a folder that is there, got no/x.npy"),
    ],
)
def test_options_that_would_be_dropped_are_refused(folder, words, rule):
    assert driver(folder, *words, "--virtual", status=2).splitlines()[-1] == f"driver.py: error: {rule}"


def test_real_numbers_are_not_cut_to_integers(folder, tmp_path):
    np.save(tmp_path / "half.npy", np.full((2, 8, 8, 1), 0.7))
    said = driver(folder, tmp_path / "half.npy", "--transform", "minus:0", "--virtual", status=1)
    where = tmp_path / "half.npy"
    assert said == f"driver.py: {where}: transform minus:0: pixels must be integers, got dtype float64\n"


@pytest.mark.parametrize("name", ["networks.json", "digits-cnn.check.npz", "digits-cnn.program.npz"])
def test_a_damaged_file_is_told_in_a_line(folder, name, tmp_path):
    shutil.copytree(folder, tmp_path / "board")
    (tmp_path / "board" / name).write_bytes(b"nonsense")
    said = driver(tmp_path / "board", "--check", "--virtual", status=1)
    assert said.startswith("driver.py: ")
    assert name in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["networks.json", "digits-cnn.program.npz", "*.manifest.json", "*.bit"])
def test_a_missing_file_is_told_in_a_line(folder, name, tmp_path):
    shutil.copytree(folder, tmp_path / "board")
    (gone,) = (tmp_path / "board").glob(name)
    gone.unlink()
    said = driver(tmp_path / "board", "--check", "--virtual", status=1)
    assert re.fullmatch(rf"driver\.py: .*{re.escape(gone.name)}.*\n", said)
    assert "Errno" not in said


def test_a_simulation_overlay_is_not_loaded_into_a_device(folder):
    said = driver(folder, "--check", status=2).splitlines()[-1]
    bit = next(folder.glob("*.bit")).name
    assert said == (
        f"driver.py: error: {bit} is for the virtual board alone: make the bitstream and deploy again, or --virtual"
    )
    assert f"`{bit}` is for the virtual board alone" in (folder / "README.md").read_text()


def test_the_newest_bitstream_of_the_design_goes_to_the_board(own_build, tmp_path):
    with_bitstream(own_build, ["older", "newer"])
    done = deploy(own_build, tmp_path / "board")
    assert (done.bit, done.simulation) == ("newer.bit", False)
    assert {path.name for path in done.folder.glob("newer*")} == {"newer.bit", "newer.hwh", "newer.manifest.json"}
    assert "virtual board alone" not in (done.folder / "README.md").read_text()


def test_a_bitstream_of_another_design_is_refused(own_build, tmp_path):
    (bit,) = with_bitstream(own_build, ["other"])
    manifest = bit.with_name("other.manifest.json")
    manifest.write_text(manifest.read_text().replace(own_build.digest, "ab" * 32))
    with value_error(f"{bit}: must be of the build's design {own_build.digest[:16]}, got abababababababab"):
        deploy(own_build, tmp_path / "board", bitstream=bit)
    assert not (tmp_path / "board").exists()
    stray = bit.with_name("stray.bit")
    stray.write_bytes(b"configuration data")
    done = call("deploy", own_build.folder, "--to", tmp_path / "board")
    left = re.findall(r"(?m)^bitloom: (.*): left out, as it isn't of the build's design$", done.stderr)
    assert sorted(left) == [str(bit), str(stray)]
    assert "for the virtual board alone" in done.stdout


def test_a_simulation_overlay_is_no_bitstream(build, tmp_path):
    with value_error(f"{build.bit}: must be a bitstream for the board, got a simulation overlay"):
        deploy(build, tmp_path / "board", bitstream=build.bit)


def test_a_transform_is_checked(build, tmp_path):
    with value_error(
        "digits-cnn: transform host:1/255: needs the network's host file, NAME.host.json beside the model, got none"
    ):
        deploy(build, tmp_path / "board", transform="host:1/255")
    deploy(build, tmp_path / "board", transform="shift:4")
    content = json.loads((tmp_path / "board" / "networks.json").read_text())
    assert content["networks"]["digits-cnn"]["transform"] == "shift:4"


def test_the_driver_in_c_comes_where_it_is_asked_for(build, tmp_path):
    done = call("deploy", build.folder, "--to", tmp_path / "board", "--c")
    assert done.exit_code == 0
    assert {path.name for path in (tmp_path / "board" / "c").iterdir()} == {path.name for path in c_files()}
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path / "board", check=True)
    assert "cmake -B build c" in (tmp_path / "board" / "README.md").read_text()
    deploy(build, tmp_path / "board")
    assert not (tmp_path / "board" / "c").exists()


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A folder for a board, and what deploy said, of a network with several outputs as one of ours and as imported."""
    place = tmp_path_factory.mktemp("several")
    model = three_heads()
    imported = import_graph(to_graph(to_qonnx(model)), name="imported")
    models = [model, imported.model]
    design = size_memories("heads", models, small_npu(model))
    builds.build(place / "heads", design, models, origin=builds.Origin(hosts={"imported": imported.host}))
    said = call("deploy", place / "heads", "--to", place / "board", "--c")
    assert said.exit_code == 0
    return place / "board", said.stderr


def test_a_network_with_several_outputs_is_told_how_it_runs(several):
    folder, said = several
    rule = "left out by the example in C, which takes networks with one output, of one map"
    assert [line for line in said.splitlines() if rule in line] == [
        f"bitloom: {n}: {rule}" for n in ("heads", "imported")
    ]
    page = (folder / "README.md").read_text()
    assert "\npython3 driver.py images.npy --outputs --out outputs.npy\n" in page
    rows, columns, channels = three_heads().network.input.shape
    assert f"\n| `heads` | `(N, {rows}, {columns}, {channels})` | none | `--outputs --out outputs.npy` |\n" in page
    takes = f"`(N, {channels}, {rows}, {columns})` | none: numbers are what the imported file takes"
    assert f"\n| `imported` | {takes} | `--outputs --out outputs.npz` |\n" in page
    assert " It doesn't take `heads`: its networks have one output, of one map. It doesn't" in page


@pytest.mark.slow
def test_several_outputs_of_images(several, tmp_path):
    folder, _ = several
    model = three_heads()
    images = random_images(model.network, 3, 1)
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "file.npy", np.moveaxis(images, 3, 1).astype(np.float32))
    maps = dict(model.walk(images))
    words = "--virtual", "--outputs", "--out"
    driver(folder, tmp_path / "images.npy", *words, tmp_path / "outputs.npy")
    assert np.array_equal(np.load(tmp_path / "outputs.npy"), maps["outputs"])
    imported = "--network", "imported", *words
    driver(folder, tmp_path / "file.npy", *imported, tmp_path / "outputs.npz")
    driver(folder, tmp_path / "images.npy", *imported, tmp_path / "host.npz", "--transform", "host")
    for name in ("outputs.npz", "host.npz"):
        with np.load(tmp_path / name) as got:
            for values, head in zip(got.values(), HEADS, strict=True):
                wanted = maps[head].reshape(3, -1) if head == "dense_3" else np.moveaxis(maps[head], 3, 1)
                assert np.array_equal(values, wanted)
    rule = "driver.py: --out: the file for these results of imported must end in .npz, got outputs.npy\n"
    assert driver(folder, tmp_path / "file.npy", *imported, tmp_path / "outputs.npy", status=1) == rule
    rule = "driver.py: --out: the file for these results of heads must end in .npy, got outputs.npz\n"
    assert driver(folder, tmp_path / "images.npy", *words, tmp_path / "outputs.npz", status=1) == rule
    rule = "driver.py: heads: --outputs must be given, as the network has no classes\n"
    assert driver(folder, tmp_path / "images.npy", "--virtual", status=1) == rule


def test_a_changed_script_is_kept(build, tmp_path):
    deploy(build, tmp_path / "board")
    script = tmp_path / "board" / "driver.py"
    script.write_text("print('mine')\n")
    done = call("deploy", build.folder, "--to", script.parent)
    assert done.exit_code == 0
    assert "driver.py is kept" in done.stderr
    assert (script.parent / "driver.py.kept").read_text() == "print('mine')\n"
    assert script.read_text().startswith("#!/usr/bin/env python3")


def test_other_folders_are_left_alone(build, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with value_error(f"{tmp_path}: must be empty or hold the deploy.json of before, got a folder with other files"):
        deploy(build, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_wheel_has_what_pip_would_pack(folder, wheel):
    packed_here = zipfile.ZipFile(next(folder.glob("*.whl")))
    by_pip = zipfile.ZipFile(wheel)
    assert packed_here.testzip() is None
    rooms = {name for name in by_pip.namelist() if name.startswith("bitloom/")}
    assert rooms <= set(packed_here.namelist())
    for name in rooms:
        assert packed_here.read(name) == by_pip.read(name), name
    record = next(name for name in packed_here.namelist() if name.endswith("RECORD"))
    assert len(packed_here.read(record).decode().splitlines()) == len(packed_here.namelist())


def test_pip_installs_the_wheel(folder, tmp_path):
    where = tmp_path / "site"
    words = ["install", "--no-deps", "--no-index", "--no-compile", "-q", "--target", str(where)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(next(folder.glob("*.whl")))], check=True)
    code = "import bitloom, importlib.metadata as m; print(bitloom.__path__[0], m.version('bitloom-fpga'))"
    environment = {**os.environ, "PYTHONPATH": str(where)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    place, version = done.stdout.split()
    assert place == str(where / "bitloom")
    assert next(folder.glob("*.whl")).name == f"bitloom_fpga-{version}-py3-none-any.whl"


def test_the_wheel_of_an_egg_has_metadata(tmp_path, monkeypatch):
    """Which setuptools leaves in the folder of the sources: PKG-INFO is what METADATA is elsewhere."""
    egg = tmp_path / "bitloom_fpga.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: bitloom-fpga\nVersion: 7.8.9\nSummary: x\n")
    monkeypatch.syspath_prepend(tmp_path)
    name, data = wheels.wheel()
    version = name.split("-")[1]
    assert version.startswith("7.8.9+")
    metadata = zipfile.ZipFile(io.BytesIO(data)).read(f"bitloom_fpga-{version}.dist-info/METADATA").decode()
    assert metadata == f"Metadata-Version: 2.4\nName: bitloom-fpga\nVersion: {version}\nSummary: x\n"


def test_wheels_of_two_states_have_two_versions(tmp_path, monkeypatch):
    """One file of the package differs; the same package gives the same version and bytes."""
    shutil.copytree(
        Path(bitloom_package.__path__[0]), tmp_path / "bitloom", ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr(bitloom_package, "__path__", [str(tmp_path / "bitloom")])
    before = wheels.wheel()
    assert wheels.wheel() == before
    with (tmp_path / "bitloom" / "golden" / "names.py").open("a") as file:
        file.write("# changed\n")
    after = wheels.wheel()
    assert before[0] != after[0]
    for name, data in (before, after):
        version = re.fullmatch(r"bitloom_fpga-(\d+\.\d+\.\d+\+[0-9a-f]{12})-py3-none-any\.whl", name)[1]
        archive = zipfile.ZipFile(io.BytesIO(data))
        metadata = archive.read(f"bitloom_fpga-{version}.dist-info/METADATA").decode()
        assert f"\nVersion: {version}\n" in metadata
