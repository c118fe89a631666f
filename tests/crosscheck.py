"""The same network by every implementation, stage by stage, beside golden's plain definition.

Golden's definition (``Model.trace``) is what the others are compared with: the tiled convolution in numpy, the CUDA
source under fibers and on a GPU, the packed convolution of this machine's processor (golden/kernels/tiled), and
simulated hardware. Hardware gives only a network's last map, so the network is cut off after each stage, and one design
runs all these shorter networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.run import run
from tests.golden.kernels.tiled import check

RTL = "rtl"
"""Simulated hardware, beside the names of ``check.IMPLEMENTATIONS``."""


@dataclass(frozen=True)
class StageResult:
    """A stage of the network, and how many of its values each implementation has otherwise than golden.

    Attributes
    ----------
    name
        Of the stage: that of its first layer.
    values
        Values that the stage gives for all images.
    wrong
        How many of these values each implementation has otherwise than golden, by the implementation's name; None where
        an implementation leaves the stage to golden.
    """

    name: str
    values: int
    wrong: dict[str, int | None]


def crosscheck(
    model: Model, names: Sequence[str], npu: Npu, folder: Path, images: int = 1, word_bits: int = 32
) -> list[StageResult]:
    """Compute every stage of a network by the named implementations, for random images; hardware has the NPU ``npu``,
    its build goes to ``folder``, and packed words have ``word_bits`` where an implementation has a choice."""
    given = random_images(model.network, images, 0)
    golden = dict(model.walk(given))
    stages = check.stages(model, word_bits)
    wrong: dict[str, list[int | None]] = {}
    for name in names:
        if name == RTL:
            outputs: Sequence[np.ndarray | None] = hardware_trace(model, given, stages, npu, folder)
        else:
            chosen = check.IMPLEMENTATIONS[name]
            outputs = check.trace(model, given, chosen.convolve, chosen.word_bits or word_bits)
        wrong[name] = [None if x is None else int((x != golden[s.last]).sum()) for s, x in zip(stages, outputs)]
    return [
        StageResult(s.layers[0][0].name, golden[s.last].size, {name: wrong[name][k] for name in names})
        for k, s in enumerate(stages)
    ]


def hardware_trace(
    model: Model, images: np.ndarray, stages: Sequence[check.PackedStage], npu: Npu, folder: Path
) -> list[np.ndarray]:
    """Results of each stage on simulated hardware: (N, H', W', C') in golden's values."""
    cut = [cut_off(model, stage.last) for stage in stages]
    build = builds.build(folder, size_memories("crosscheck", cut, npu), cut)
    return [run(build, shorter, images).outputs for shorter in cut]


def cut_off(model: Model, last: str) -> Model:
    """The model up to the layer ``last``, with whose name its own name ends."""
    names = [layer.name for layer in model.network.layers]
    layers = model.network.layers[: names.index(last) + 1]
    name = f"{model.network.name}-{layers[-1].name.replace('_', '-')}"
    arrays = {layer.name: model.arrays[layer.name] for layer in layers if layer.name in model.arrays}
    return Model(Network(name=name, input=model.network.input, layers=layers), arrays)
