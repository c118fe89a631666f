"""The same network by every implementation, stage by stage, beside golden's plain definition.

Golden's definition (``Model.trace``) is what the others are compared with: the tiled convolution in numpy, the CUDA
source under fibers and on a GPU, the packed convolution of this machine's processor (golden/kernels/tiled), and
simulated hardware. Hardware gives only a network's last map. So the network is cut off after each stage, and one design
runs all these shorter networks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bitloom.golden.kernels import native
from bitloom.golden.kernels.tiled import check
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import default_npu
from bitloom.overlay.build.run import run

RTL = "rtl"
NAMES = (*check.IMPLEMENTATIONS, RTL)
"""Implementations that are compared with golden: those of golden.kernels.tiled, and simulated hardware."""

NPUS = dict.fromkeys(("cnv-w1a1", "lfc-w1a1"), Npu(kfp=64, kgp=8, pfp=8, ol=4, planes=8, shift_bits=0))
"""The one NPU that runs a network's stages, where it is not ``default_npu``'s, which is small."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StageResult:
    """A stage of the network, and how many of its values each implementation has otherwise than golden.

    Attributes
    ----------
    name
        Of the stage: that of its first layer.
    values
        Values that it gives for all images.
    wrong
        How many of these each implementation has otherwise than golden, by its name; None where an implementation
        leaves the stage to golden.
    """

    name: str
    values: int
    wrong: dict[str, int | None]


def missing() -> dict[str, str]:
    """Why each implementation that can't run on this machine can't, in a line each."""
    reasons = {name: found.missing() for name, found in check.IMPLEMENTATIONS.items()} | {RTL: native.missing()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def available() -> list[str]:
    """Implementations that can run on this machine."""
    absent = missing()
    return [name for name in NAMES if name not in absent]


def crosscheck(
    model: Model,
    folder: Path,
    names: Sequence[str],
    *,
    images: int = 1,
    word_bits: int = 32,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Compute every stage of a network by several implementations, for random images.

    Parameters
    ----------
    model
        The network.
    folder
        For the hardware's build.
    names
        Implementations, of ``available()``.
    images
        Number of images.
    word_bits
        Bits of a packed word, where an implementation has a choice.
    progress
        Called with (implementations done, all).

    Returns
    -------
    list
        A row for each stage.

    Raises
    ------
    ValueError
        If there is no such implementation, or ``images`` is below 1.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(f"crosscheck: an implementation must be one of {', '.join(NAMES)}, got {name!r}")
    if images < 1:
        raise ValueError(f"crosscheck: images must be >= 1, got {images}")
    given = random_images(model.network, images, 0)
    golden, stages = dict(model.walk(given)), check.stages(model, word_bits)
    wrong: dict[str, list[int | None]] = {}
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        if name == RTL:
            outputs: Sequence[np.ndarray | None] = hardware_trace(model, given, stages, folder)
        else:
            chosen = check.IMPLEMENTATIONS[name]
            outputs = check.trace(model, given, chosen.convolve, chosen.word_bits or word_bits)
        wrong[name] = [None if x is None else int((x != golden[s.last]).sum()) for s, x in zip(stages, outputs)]
    return [
        StageResult(s.layers[0][0].name, golden[s.last].size, {name: wrong[name][k] for name in names})
        for k, s in enumerate(stages)
    ]


def hardware_trace(
    model: Model, images: np.ndarray, stages: Sequence[check.PackedStage], folder: Path
) -> list[np.ndarray]:
    """What each stage gives on simulated hardware.

    Parameters
    ----------
    model
        The network.
    images
        (N, H, W, C) integers.
    stages
        Of ``check.stages``.
    folder
        For the build of one design that runs the network cut off after each stage.

    Returns
    -------
    list
        (N, H', W', C') of each stage, in golden's values.

    Raises
    ------
    ValueError
        If the engine can't compute the network.
    """
    cut = [cut_off(model, stage.last) for stage in stages]
    design = size_memories("crosscheck", cut, NPUS.get(model.network.name) or default_npu(model))
    build = builds.build(folder, design, cut)
    return [run(build, shorter, images).outputs for shorter in cut]


def cut_off(model: Model, last: str) -> Model:
    """The model up to layer number ``last``; its name ends with that layer's."""
    names = [layer.name for layer in model.network.layers]
    layers = model.network.layers[: names.index(last) + 1]
    name = f"{model.network.name}-{layers[-1].name.replace('_', '-')}"
    arrays = {layer.name: model.arrays[layer.name] for layer in layers if layer.name in model.arrays}
    return Model(Network(name=name, input=model.network.input, layers=layers), arrays)
