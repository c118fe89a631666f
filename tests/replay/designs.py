"""Verilog for simulation and for synthesis, manifest, and programs: of all reference designs, and of designs with the
parts that reference designs lack."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bitloom.golden import zoo
from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.reference_designs import DIGITS, REFERENCE_DESIGNS
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import (
    IntegerChoices,
    grouped_network,
)
from bitloom.overlay.study.mlperf_tiny import NPU as TINY
from tests.hls_gen.compiler.graph_cases import GRAPHS


@dataclass(frozen=True)
class Case:
    """A design and the networks that are compiled for it."""

    design: Design
    models: Sequence[Model]
    choices: CompileChoices = field(default_factory=CompileChoices)


def _reference(name: str) -> Case:
    reference = REFERENCE_DESIGNS[name]
    models = reference.models()
    return Case(reference.design(name, models), models, reference.choices)


def _sized(name: str, models: Sequence[Model], npu: Npu, sizing: Sizing | None = None) -> Case:
    choices = CompileChoices()
    return Case(size_memories(name, models, npu, choices, stream_bits=64, sizing=sizing), models, choices)


def _mlperf_tiny(name: str) -> Case:
    """The networks of MLPerf Tiny with seeded weights, by the choices that the compiler takes by itself."""
    return _sized(name, [mlperf_tiny.seeded(network()) for network in mlperf_tiny.NETWORKS.values()], TINY)


def _digits_residual(name: str) -> Case:
    model = zoo.load("digits-residual")
    return _sized(name, [model], small_npu(model).changed(kfp=16, kgp=8, pfp=4, ol=4))


def _inception(name: str) -> Case:
    """A skip store, tuples that are claimed ahead, concatenation, copies."""
    model = random_model(GRAPHS["inception"], 0, 32, 31)
    return _sized(name, [model], small_npu(model).changed(kfp=4, kgp=4, pfp=4, ol=2))


def _grouped(name: str) -> Case:
    """Kernel groups that read parts of tuples."""
    model = random_model(grouped_network(Pick("replay", 0), IntegerChoices()), 0, 32)
    return _sized(name, [model], small_npu(model).changed(kfp=2, kgp=3, pfp=3, ol=1))


def _streamed(name: str) -> Case:
    return _sized(name, [zoo.load("digits-cnn")], DIGITS, sizing=Sizing(stream_weights=True))


def _one_memory(name: str) -> Case:
    """Kernels and features in one memory; kernels that are made binary on line."""
    npu = DIGITS.changed(one_memory=True, kernel_binariser=True)
    return _sized(name, [zoo.load("digits-cnn")], npu)


def _collect(name: str) -> Case:
    """A register of products in each PE, which are reduced at once, by OR or by a popcount."""
    layers = (
        Conv(name="conv_1", out_channels=12, kernel=(3, 2), padding=(1, 0, 1, 1)),
        Threshold(name="threshold_1"),
        Conv(name="conv_2", out_channels=20, kernel=(2, 2), accumulate="or"),
        Dense(name="dense_3", out_channels=5),
    )
    network = Network(name="collected", input=Map(height=5, width=6, channels=10, encoding=BIPOLAR), layers=layers)
    npu = Npu.of(kfp=4, kgp=6, pfp=4, ol=3, shift_bits=0, accumulate="both", collect=4)
    return _sized(name, [random_model(network, 0)], npu)


def _or_words(name: str) -> Case:
    """Products of a word are ORed, and words are counted."""
    npu = Npu.of(kfp=32, kgp=8, pfp=8, ol=4, planes=6, word_lanes=2)
    return _sized(name, [zoo.load("digits-words")], npu)


DESIGNS = {
    **dict.fromkeys(REFERENCE_DESIGNS, _reference),
    "mlperf-tiny": _mlperf_tiny,
    "digits-residual": _digits_residual,
    "inception": _inception,
    "grouped": _grouped,
    "streamed-weights": _streamed,
    "one-memory": _one_memory,
    "collect": _collect,
    "or-words": _or_words,
}
"""How each design comes about, by its name."""


def write(folder: Path, names: Sequence[str] | None = None) -> None:
    """Write all files of the designs with these names, by default of all."""
    for name in names or DESIGNS:
        case = DESIGNS[name](name)
        here = folder / name
        here.mkdir(parents=True, exist_ok=True)
        for target in ("simulation", "synthesis"):
            generated = generate(case.design, target=target, checked=False)
            (here / f"{target}.v").write_text(generated.text)
        (here / "manifest.json").write_text(json.dumps(generated.manifest, indent=1))
        manifest = Manifest.from_dict(generated.manifest)
        for model in case.models:
            compile_model(model, manifest, case.choices).save(here / f"{model.network.name}.program.npz")
        print(name, flush=True)
