"""Random networks on the simulated board: overlays that are made once, a run through the driver, and tallies."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bitloom.driver.accelerator import Accelerator
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay


@cache
def overlay(design: Design, folder: Path) -> tuple[Path, Manifest]:
    """The .bit of a design's simulation overlay, made once a folder, and its manifest."""
    made = generate(design)
    return write_simulation_overlay(folder, made.manifest, made.text), Manifest.from_dict(made.manifest, design.name)


def outputs(bit: Path, program: Program, images: np.ndarray, **stalls: Any) -> tuple[np.ndarray, dict[str, int]]:
    """What the simulated board gives for a batch, and its counters of it. stalls : as for VirtualDevice.stall."""
    board = activate()
    board.stall(**stalls)
    board.timeout_cycles = 500_000
    try:
        with Accelerator(bit, timeout=120.0) as accelerator:
            accelerator.load(program)
            accelerator.clear_counters()
            return accelerator.predict(images, len(images)), accelerator.counters()
    finally:
        board.close()


def tally(check: Callable[[st.DataObject], str], count: int) -> Counter[str]:
    """What ``check`` says of ``count`` draws, the same ones in every run."""
    found: Counter[str] = Counter()

    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), print_blob=True,
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found[check(data)] += 1

    draw()
    print(found)
    return found
