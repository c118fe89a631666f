"""What the ways to accumulate give and cost (spec A2, A3, A12): accuracy on the digits, area of a PE.

Accuracy is that on the test images, by golden and by simulated hardware, of:

    popcount   digits-cnn, as it was trained
    replaced   the same weights with OR in place of popcount in the hidden binary layers (golden.zoo.digits_or.with_or)
    trained    digits-or, trained for OR
    words      digits-words, trained for the OR of each word and a sum over words

Area is that of one PE, for windows of PRODUCTS products.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import veriloggen

from bitloom.golden import zoo as networks
from bitloom.golden.layers.accumulate import Accumulator
from bitloom.golden.network import Model
from bitloom.golden.zoo.digits import load_digits
from bitloom.golden.zoo.digits_or import with_or
from bitloom.golden.zoo.digits_words import WORD_CHANNELS
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.array.convolver import processing_element
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.area.synthesis import area_of
from bitloom.overlay.area.yosys import yosys_version
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.run import run
from bitloom.overlay.virtual.sim import BuildError

FOLDER = Path("build/accumulate")
FRAMES = 360

PRODUCTS = 144
"""Products of a window of conv_2 in digits-cnn: 3 x 3 taps of 16 channels."""

KINDS = ("popcount", "or", "both", "or_words")
"""Ways to accumulate, as ``Npu.accumulate`` names them."""
WORD_LANES = 4
"""Lanes of a word."""
POINTS = (("parallel", PRODUCTS), ("serial", 16), ("serial", 1), ("collect", 16), ("collect", 1))
"""Structures of a PE, and its lanes."""

Row = dict[str, Any]
Progress = Callable[[int, int], None]


def models() -> dict[str, Model]:
    """The networks, by the names in the module's text."""
    popcount = networks.load("digits-cnn")
    replaced = with_or(popcount)
    replaced = Model(replace(replaced.network, name="digits-cnn-or"), replaced.arrays)
    trained, words = networks.load("digits-or"), networks.load("digits-words")
    return {"popcount": popcount, "replaced": replaced, "trained": trained, "words": words}


def accuracies(frames: int = FRAMES, folder: Path = FOLDER, progress: Progress | None = None) -> list[Row]:
    """Accuracies of golden and of hardware, which are compared on every image.

    The first network runs on the demo's design; the others share one whose NPU accumulates in every way.

    Parameters
    ----------
    frames
        Test images, the first ones.
    folder
        For the builds.
    progress
        Called with (frames done, frames of all networks).

    Returns
    -------
    list
        A row for each network.
    """
    data, found = load_digits(), models()
    images, labels = data.test_images[:frames], data.test_labels[:frames]
    others = [model for name, model in found.items() if name != "popcount"]
    made = {
        "popcount": _build(folder / "popcount", [found["popcount"]], DIGITS),
        "both": _build(folder / "both", others, replace(DIGITS, accumulate="both", word_lanes=WORD_CHANNELS)),
    }
    rows: list[Row] = []
    for number, (name, model) in enumerate(found.items()):
        accumulate = "popcount" if name == "popcount" else "both"
        update = None if progress is None else _shifted(progress, number * len(images), len(found) * len(images))
        done = run(made[accumulate], model, images, progress=update)
        report = done.report(labels)
        rows.append(
            {
                "name": name,
                "network": model.network.name,
                "npu": accumulate,
                **{key: report[key] for key in ("frames", "bit_exact_frames", "accuracy_golden", "accuracy_hardware")},
            }
        )
    return rows


def _build(folder: Path, chosen: list[Model], folding: Npu) -> builds.Build:
    """A build of one NPU for these networks."""
    return builds.build(folder, size_memories("digits", chosen, folding), chosen)


def processing_elements() -> Iterator[Npu]:
    """NPUs whose PE takes windows of PRODUCTS products, of each kind and structure; one lane has no word."""
    for kind in KINDS:
        for structure, lanes in POINTS:
            words = kind == "or_words"
            if words and lanes % WORD_LANES:
                continue
            yield Npu(
                kfp=lanes,
                accumulate=kind,
                word_lanes=WORD_LANES if words else 0,
                collect=PRODUCTS if structure == "collect" else 0,
                shift_bits=0,
                acc_bits=4 if kind == "or" else bits_for(PRODUCTS // (WORD_LANES if words else 1)) + 1,
            )


def pe_area(npu: Npu) -> Row:
    """Kind, structure, lanes, cycles of a window; and LUTs, flip-flops and levels of the PE, None without Yosys."""
    structure = "collect" if npu.collect else "parallel" if npu.kfp >= PRODUCTS else "serial"
    golden = Accumulator(kind="popcount", structure=structure, products=PRODUCTS, lanes=npu.kfp)
    row: Row = {"kind": npu.accumulate, "structure": structure, "lanes": npu.kfp, "cycles": golden.cycles()}
    if missing_yosys():
        return {**row, "lut": None, "ff": None, "levels": None}
    veriloggen.reset()
    library = Library(32, "carry_save")
    block = processing_element(npu)[0](library, npu)
    found = area_of(block.m.to_verilog(), block.m.name)
    return {**row, "lut": found.total.lut, "ff": found.total.ff, "levels": found.levels}


def missing_yosys() -> str:
    """What to install for the areas; "" if nothing is missing."""
    try:
        yosys_version()
    except BuildError as e:
        return str(e)
    return ""


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    """Progress of a part that begins after ``before`` of ``total``."""
    return lambda done, _: progress(before + done, total)
