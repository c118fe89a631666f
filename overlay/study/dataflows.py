"""The two dataflows, layer by layer (spec B9, A10): what input_stationary saves of tuple memory, and of cycles.

One design with enough accumulators runs the network several times, each time with another program: every layer
output_stationary, then one layer after the other input_stationary. So all cycles are of the same hardware.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.images import random_images
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

Progress = Callable[[int, int], None]


BOTH = ("output_stationary", "input_stationary")
"""The two dataflows."""


def dataflows(
    model: Model, folding: Npu, folder: Path, frames: int = 4, progress: Progress | None = None
) -> dict[str, Any]:
    """Compare the dataflows of each layer that has several kernel groups.

    Parameters
    ----------
    model
        The network.
    folding
        The one NPU that it runs on; the study gives it enough accumulators.
    folder
        For the simulation overlay.
    frames
        Random images of a batch.
    progress
        Called with (programs run, all of them).

    Returns
    -------
    dict
        Cycles a frame with all layers output_stationary; and for each layer with several kernel groups its words of
        tuple memory in both dataflows, and the cycles a frame that it gains as the only input_stationary one.

    Raises
    ------
    ValueError
        If the engine can't compute the network.
    RuntimeError
        If hardware and golden differ.
    """
    layers = _plan(model, folding, "output_stationary").lowered.layers
    groups = {p.name: -(-p.out_channels // folding.kgp) for p in layers}
    several = [name for name, count in groups.items() if count > 1]
    # Accumulators for two windows of the layer with most groups, so that one window never waits for the other.
    accumulators = 1 << (2 * max(groups.values()) - 1).bit_length() if several else 2
    roomy = replace(folding, accumulators=accumulators)
    choices: list[Mapping[str, str]] = [{}, *({name: "input_stationary"} for name in several)]
    cycles = _cycles(model, _enough(model, roomy), folder, frames, choices, progress)
    layers = [
        {
            "name": name,
            "groups": groups[name],
            **{f"tuple_words_{dataflow}": _words(model, roomy, name, dataflow) for dataflow in BOTH},
            "cycles_gained": cycles[0] - after,
        }
        for name, after in zip(several, cycles[1:])
    ]
    return {
        "network": model.network.name,
        "accumulators": accumulators,
        "cycles_output_stationary": cycles[0],
        "layers": layers,
    }


def _cycles(
    model: Model,
    design: Design,
    folder: Path,
    frames: int,
    choices: Sequence[Mapping[str, str]],
    progress: Progress | None,
) -> list[float]:
    """Cycles a frame of a batch with each of the dataflows ``choices``; RuntimeError where golden differs."""
    made = generate(design)
    manifest = Manifest.from_dict(made.manifest, design.name)
    bit = write_simulation_overlay(folder, made.manifest, made.text)
    images = random_images(model.network, frames, 0)
    golden = packed.forward(model, images)
    cycles = []
    board = activate()
    try:
        with Accelerator(bit) as accelerator:
            for number, choice in enumerate(choices):
                accelerator.load(compile_model(model, manifest, CompileChoices(dataflow=choice)))
                accelerator.clear_counters()
                if not np.array_equal(accelerator.predict(images, frames), golden):
                    raise RuntimeError(f"{model.network.name}: every frame must equal golden with {dict(choice)}")
                cycles.append(accelerator.counters()["cycles"] / frames)
                if progress is not None:
                    progress(number + 1, len(choices))
    finally:
        board.close()
    return cycles


def _plan(model: Model, folding: Npu, dataflow: str) -> Any:
    """The plan of the network for one NPU, with one dataflow for all layers."""
    return plan(model, [folding], CompileChoices(dataflow=dataflow))


def _enough(model: Model, folding: Npu) -> Design:
    """A design that fits the network in both dataflows."""
    choices = [CompileChoices(dataflow=dataflow) for dataflow in BOTH]
    both = [size_memories("dataflows", [model], folding, choice).npus[0] for choice in choices]
    depths = {k: max(getattr(n, k) for n in both) for k in _plan(model, folding, "output_stationary").npus[0].depths()}
    return Design(name="dataflows", npus=(replace(both[0], **depths),))


def _words(model: Model, folding: Npu, name: str, dataflow: str) -> int:
    """Words that the tuples of a layer need in its tuple memory."""
    made = _plan(model, folding, dataflow)
    number = [p.name for p in made.lowered.layers].index(name)
    row = made.npus[0].conv.layers[number]
    return int(row["hold_tuples"] * (row["words_minus_1"] + 1))
