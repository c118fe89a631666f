"""Every kind of file that bitloom reads: how a valid one is written, and what reads it."""

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden import file, zoo
from bitloom.golden.atomic import write_scratch
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.file import model_digest
from bitloom.golden.host import file as hosts
from bitloom.golden.host.host import Host, HostOutput, OutputPart
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.training.train import Recipe, train
from bitloom.golden.zoo import bnn_pynq
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model, compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.array_file import array_bytes, npy_bytes
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images, read_images
from bitloom.overlay.build.measured import Measured
from bitloom.overlay.evaluation.files import read_labelled
from bitloom.overlay.evaluation.pictures import check_pillow, read_picture
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.fuzz.campaign import read_progress, run_campaign, until
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.board_file import load_board
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.study.learning import FloatRun, compare, read_result
from bitloom.overlay.study.machine_learning import MachinePlan, learn_on_machine
from bitloom.overlay.virtual.board.board import hwh_arch
from bitloom.overlay.virtual.sim import vcd
from bitloom.overlay.virtual.simulation_overlay import (
    SUFFIXES,
    bit_bytes,
    read_simulation_overlay,
    write_simulation_overlay,
)

DIGEST = "0123456789abcdef" * 4
NPU = Npu.of(kfp=16, kgp=8, pfp=8, ol=2, planes=6)
VERILOG = "module bitloom_top;\nendmodule\n"
WAVE = (
    "$version bitloom $end\n$scope module TOP $end\n$scope module top $end\n$var wire 1 ! clk $end\n"
    '$var wire 8 " word [7:0] $end\n$upscope $end\n$upscope $end\n$enddefinitions $end\n'
    '#0\n0!\nb00000011 "\n#1\n1!\n#2\n0!\nb101 "\n'
)
BOARD = (
    'name = "mine"\npart = "xc7z020clg400-1"\nboard_part = "example.com:mine:part0"\n'
    "[budget]\nlut = 53_200\nff = 106_400\nbram36 = 140\ndsp = 220\n"
)


@dataclass(frozen=True)
class FileKind:
    """A kind of file."""

    name: str
    """Name of the kind."""
    file: str
    """Name of the file to damage."""
    write: Callable[[Path], object]
    """Writes a valid one to a path of that name in an empty folder, and what belongs to it beside."""
    read: Callable[[Path], object]
    """Reads the file at a path as bitloom does; raises an error in one line where it can't."""


@cache
def _model() -> Model:
    return zoo.load("digits-cnn")


@cache
def _manifest() -> Manifest:
    return Manifest.of(size_memories("digits", [_model()], (NPU,)), DIGEST)


@cache
def _partitioned() -> CompiledNetwork[Program]:
    """A network in three programs."""
    return compile_network(_model(), _manifest(), CompileChoices(partitions={"dense_4": 2}))


@cache
def _program() -> Program:
    """A program with a host that passes images and results on unchanged."""
    part = OutputPart(first=0, size=10, chain=(("line", np.ones(10), np.zeros(10)),))
    host = Host(
        digest=model_digest(_model()),
        shape=(64,),
        order=np.arange(64),
        front=(),
        boundaries=np.arange(0.5, 16)[None],
        reached=np.ones(16, bool),
        first=0,
        stride=1,
        outputs=(
            HostOutput(
                name="scores",
                shape=(10,),
                parts=(part,),
                order=np.arange(10),
                closing=("Softmax",),
                classes=10,
                apart=1,
            ),
        ),
    )
    return compile_model(_model(), _manifest(), host=host)


def _write_json(path: Path, data: Any) -> None:
    write_scratch(path, json.dumps(data))


def _write_overlay(path: Path) -> None:
    bit = write_simulation_overlay(path.parent, _manifest().to_dict(), VERILOG)
    for written in list(path.parent.iterdir()):
        write_scratch(path.with_name(written.name.replace(bit.stem, "design", 1)), written.read_bytes())
        written.unlink()


def _read_signed(path: Path) -> object:
    """Read an overlay after its .bit was written anew to fit the files beside it, damaged or not."""
    beside = {suffix: path.with_name(f"design{suffix}").read_bytes() for suffix in SUFFIXES}
    design = BlockDesign.from_manifest(_manifest().to_dict(), BoardTarget())
    write_scratch(path.with_name("design.bit"), bit_bytes(design, beside))
    return read_simulation_overlay(path.with_name("design.bit"))


def _write_build(path: Path) -> None:
    _write_json(
        path,
        {
            "format": builds.FORMAT,
            "version": 1,
            "design": _manifest().design.to_dict(),
            "digest": DIGEST,
            "bit": "design.bit",
            "programs": {"digits-cnn": "digits-cnn.program.npz"},
            "models": {"digits-cnn": "digits-cnn.npz"},
            "map_order": "auto",
            "dataflow": "output_stationary",
            "command": ["bitloom", "build"],
            "sources": None,
        },
    )


def _run() -> dict[str, Any]:
    counters = {n: {"cycles": 100 * n, "npu0_beats": 90 * n} for n in (1, 2, 4)}
    return {"network": "digits-cnn", "run": Measured("digits-cnn", DIGEST, DIGEST, 4, 4, counters).to_dict()}


def _lfc(path: Path) -> None:
    """A file of weights as BNN-PYNQ's are, all of them -1."""
    arrays: dict[str, Any] = {"classes": np.array(bnn_pynq.DIGITS)}
    for i, (outputs, inputs) in enumerate(((1024, 832), (1024, 1024), (1024, 1024), (64, 1024))):
        arrays |= {
            f"W{i}_shape": np.array([outputs, inputs]),
            f"T{i}": np.zeros((outputs, 1), np.int32),
            f"W{i}_bits": np.zeros((outputs, inputs // 8), np.uint8),
        }
    write_scratch(path, array_bytes(arrays))


def _train(path: Path) -> object:
    """Train for one epoch; from a whole checkpoint there is nothing left to train."""
    source = Map(height=3, width=3, channels=2, encoding=BIPOLAR)
    layers = (
        Conv(name="conv", out_channels=4, kernel=(2, 2)),
        Threshold(name="threshold"),
        Dense(name="dense", out_channels=2),
    )
    network = Network(name="tiny", input=source, layers=layers)
    images = random_images(network, 16, 0)
    return train(network, images, np.arange(16) % 2, Recipe(epochs=1, batch=8), checkpoint=path)


PLAN = LearnPlan(hidden=(4,), epochs=1)
"""How the perceptrons below are trained; from a whole checkpoint there is nothing left to learn."""
MACHINE_PLAN = MachinePlan(hidden=(4,), epochs=1, slaves=2, batch=4)


def _learn_data() -> LearnData:
    """Images of six grey values, of two classes."""
    images = np.arange(6 * 80).reshape(80, 6) % 17
    labels = np.arange(80) % 2
    return LearnData("tiny", images[:64], labels[:64], images[64:], labels[64:], 8.0)


def _learn(path: Path) -> object:
    """A perceptron of codes learns for an epoch."""
    return learn(SETTINGS["codes-2"], PLAN, _learn_data(), checkpoint=path)


def _learn_on_machine(path: Path) -> object:
    """A perceptron learns for an epoch on the training machine."""
    return learn_on_machine(MACHINE_PLAN, _learn_data(), path)


IDX_NAMES = ("test-images-idx3-ubyte.gz", "test-labels-idx1-ubyte.gz")


def _write_idx(path: Path) -> None:
    """Three images as IDX, compressed, and their labels beside them."""
    for name, shape in zip(IDX_NAMES, ((3, 8, 8), (3,))):
        values = bytes(range(16)) * 12 if len(shape) > 1 else bytes([7, 0, 9])
        data = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + values
        write_scratch(path.with_name(name), gzip.compress(data, mtime=0))


def _write_labelled(path: Path) -> None:
    """Three images and their labels as npz."""
    write_scratch(path, array_bytes({"x": random_images(_model().network, 3, 0), "y": np.array([7, 0, 9])}))


def _write_picture(path: Path) -> None:
    """A PNG of 8 x 8 grey pixels."""
    check_pillow()
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(out, "PNG")
    write_scratch(path, out.getvalue())


def _chain() -> Model:
    """A small network with convolutions, pools, thresholds and a dense layer."""
    layers = (
        Conv(name="conv_1", out_channels=4, kernel=(3, 3)),
        Threshold(name="threshold_1"),
        MaxPool(name="pool_1", kernel=(2, 2), stride=(2, 2)),
        Dense(name="dense_2", out_channels=3),
    )
    source = Map(height=6, width=6, channels=2, encoding=BIPOLAR)
    rng = np.random.default_rng(0)
    arrays = {
        "conv_1": {"weight": rng.choice([-1, 1], (4, 3, 3, 2))},
        "threshold_1": {"threshold": np.zeros((4, 1), np.int64), "direction": np.ones(4, np.int64)},
        "dense_2": {"weight": rng.choice([-1, 1], (3, 2, 2, 4))},
    }
    return Model(Network(name="chain", input=source, layers=layers), arrays)


def _import(path: Path) -> object:
    """Import an ONNX file; of several things that can't be imported the first is enough."""
    try:
        return import_file(path, name="chain")
    except ImportRefused as e:
        raise ValueError(f"{path}: {e.lines[0]}") from None


def _write_host(path: Path) -> None:
    """Write an ONNX file, and the host file of its import."""
    write_scratch(path.with_name("net.onnx"), to_qonnx(_chain()))
    hosts.save(import_file(path.with_name("net.onnx"), name="chain").host, path)


def _read_host(path: Path) -> object:
    """The file of a host, beside the model that it belongs to."""
    return hosts.load(path, import_file(path.with_name("net.onnx"), name="chain").model)


_ALL = (
    FileKind("onnx", "net.onnx", lambda path: write_scratch(path, to_qonnx(_chain())), _import),
    FileKind("host", "net.host.json", _write_host, _read_host),
    FileKind("model", "model.npz", lambda path: file.save(_model(), path), file.load),
    FileKind("program", "a.program.npz", lambda path: _program().save(path), Program.load),
    FileKind("partitions", "a.program.npz", lambda path: _partitioned().save(path), read_program),
    FileKind("manifest", "a.manifest.json", lambda path: _write_json(path, _manifest().to_dict()), Manifest.load),
    FileKind("build", "build.json", _write_build, lambda path: builds.load(path.parent)),
    FileKind(
        "foldings",
        "foldings.json",
        lambda path: _write_json(path, Candidate("digits-cnn", (NPU,), (0, 0, 0)).to_dict()),
        lambda path: Candidate.load(path, _model()),
    ),
    FileKind("run", "run.json", lambda path: _write_json(path, _run()), Measured.load),
    FileKind(
        "images",
        "images.npy",
        lambda path: write_scratch(path, npy_bytes(random_images(_model().network, 3, 0))),
        lambda path: read_images(path, _model().network),
    ),
    FileKind("labelled images", "labelled.npz", _write_labelled, lambda path: read_labelled(path, _model().network)),
    FileKind("IDX images", IDX_NAMES[0], _write_idx, lambda path: read_labelled(path, _model().network)),
    FileKind(
        "IDX labels",
        IDX_NAMES[1],
        _write_idx,
        lambda path: read_labelled(path.with_name(IDX_NAMES[0]), _model().network, path),
    ),
    FileKind("picture", "picture.png", _write_picture, lambda path: read_picture(path, (8, 8, 1), resize=True)),
    FileKind("checkpoint", "checkpoint.npz", _train, _train),
    FileKind("learning checkpoint", "learning.npz", _learn, _learn),
    FileKind("machine checkpoint", "machine.npz", _learn_on_machine, _learn_on_machine),
    FileKind(
        "learning result",
        "tiny-float-0.json",
        lambda path: compare([FloatRun(setting="float", plan=PLAN)], _learn_data(), path.parent),
        read_result,
    ),
    FileKind(
        "campaign",
        "campaign.json",
        lambda path: run_campaign("files", path.parent, until(0, None), seed=0),
        lambda path: read_progress(path.parent, "files"),
    ),
    FileKind("weights", "lfc.npz", _lfc, lambda path: bnn_pynq.trained(bnn_pynq.lfc(), path)),
    FileKind("overlay", "design.bit", _write_overlay, read_simulation_overlay),
    FileKind("overlay manifest", "design.manifest.json", _write_overlay, _read_signed),
    FileKind("hwh", "design.hwh", _write_overlay, hwh_arch),
    FileKind("board", "board.toml", lambda path: write_scratch(path, BOARD), load_board),
    FileKind(
        "waveform",
        "wave.vcd",
        lambda path: write_scratch(path, WAVE),
        lambda path: vcd.read(path, ["top.clk", "top.word"]),
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
"""All kinds by name."""
