"""Networks on the simulated board: overlays that are made once, the comparison with golden and with the flow model, the
proof that a deadlock of the flow model is one in hardware, and tallies of random draws."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model, compile_plan
from bitloom.hls_gen.compiler.flow import Deadlock, Result, Waits, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.host_tail import split
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.compiler.weight_order import whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import SimulationTimeout
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay
from tests.networks import random_images

FRAMES = 4
"""Frames of a batch."""
STALLS = {"source": 0.4, "sink": 0.4}
"""Share of cycles in which each stream pauses."""
ROOMY_SPILL = 1 << 12
"""Words of a spill store that is never full."""
BLOCKED = re.compile(r"\S+: spill_words must be >= (\d+), design \w+ has (\d+): flow: deadlock: .*")
"""The refusal of a network whose NPUs would wait for each other in a circle."""


@cache
def folder() -> "tempfile.TemporaryDirectory[str]":
    """Where the overlays of this process lie, to its end. It is made late: in the folder that tests have then."""
    return tempfile.TemporaryDirectory(prefix="bitloom-tests-")


@cache
def overlay(design: Design) -> tuple[Path, Manifest]:
    """The .bit of a design's simulation overlay, made once, and its manifest."""
    generated = generate(design)
    bit = write_simulation_overlay(folder().name, generated.manifest, generated.text)
    return bit, Manifest.from_dict(generated.manifest, design.name)


@contextmanager
def loaded(bit: Path, program: Program, *, timeout_cycles: int = 500_000, **stalls: Any):
    """An accelerator on a simulated board with the program loaded, and the board. stalls : as for
    VirtualDevice.stall."""
    board = activate()
    board.stall(**stalls)
    board.timeout_cycles = timeout_cycles
    try:
        with Accelerator(bit, timeout=120.0) as accelerator:
            accelerator.load(program)
            accelerator.clear_counters()
            yield accelerator, board
    finally:
        board.close()


def outputs(bit: Path, program: Program, images: np.ndarray, **stalls: Any) -> tuple[np.ndarray, dict[str, int]]:
    """Results of the simulated board for a batch, and its counters of it. stalls : as for VirtualDevice.stall."""
    with loaded(bit, program, **stalls) as (accelerator, _):
        return accelerator.predict(images, len(images)), accelerator.counters()


@dataclass(frozen=True)
class Comparison:
    """A network that was compared: its plan and its program."""

    plan: Plan
    program: Program


def compare(
    design: Design,
    model: Model,
    choices: CompileChoices | None = None,
    *,
    images: np.ndarray | None = None,
    batches: Sequence[int] = (FRAMES,),
    stalls: dict[str, float] = STALLS,
    stalled_batch: int | None = None,
    seed: int = 1,
) -> Comparison:
    """Run a network on the simulated board. Results are golden's, with pauses of the host's streams and then without;
    without pauses every cycle and every count is the flow model's, too.

    Parameters
    ----------
    design, model, choices
        What runs, and how it is compiled.
    images
        By default as many random ones as the largest batch has.
    batches
        Frames of each batch without pauses. Where the last one has twice the frames of the one before, the waits of a
        frame are compared, too.
    stalls
        Share of cycles in which the streams ``source`` and ``sink`` pause while the program is loaded and in the first
        run. All 0: there is no such run.
    stalled_batch
        Frames of a transfer in the run with pauses; by default all.
    seed
        Of the random images and of the pauses.

    Raises
    ------
    ValueError
        The network doesn't fit the design.
    """
    bit, manifest = overlay(design)
    device, _ = split(model)
    network_plan = plan(device, manifest.npus, choices)
    program = compile_plan(model, network_plan, manifest)
    flow = simulate(whole_system(network_plan, manifest.design), 2 * -(-max(batches) // 2))
    if images is None:
        images = random_images(model.network, max(batches), seed)
    golden = model.forward(images)
    counters = list[dict[str, int]]()
    with loaded(bit, program, **stalls, seed=seed) as (accelerator, board):  # loads take longest: one is enough
        if any(stalls.values()):
            np.testing.assert_array_equal(accelerator.predict(images, stalled_batch or len(images)), golden)
            check_counts(network_plan, accelerator.counters(), len(images))
        board.stall()
        for frames in batches:
            accelerator.clear_counters()
            np.testing.assert_array_equal(accelerator.predict(images[:frames], frames), golden[:frames])
            counters.append(accelerator.counters())
            assert counters[-1]["cycles"] == cycles(flow, frames)
            check_counts(network_plan, counters[-1], frames)
    if len(batches) > 1 and batches[-1] == 2 * batches[-2]:
        check_waits(flow, counters[-2], counters[-1], batches[-2])
    return Comparison(network_plan, program)


def cycles(flow: Result, frames: int) -> int:
    """Cycles in which a frame is in flight: those that register CYCLES counts."""
    total = end = 0
    for begin, left in zip(flow.accepted[:frames], flow.left[:frames]):
        total += left - max(begin, end if total else begin)
        end = left
    return total


def check_counts(network_plan: Plan, counters: dict[str, int], frames: int) -> None:
    """Every NPU computes its layers' beats, and every cycle is one of beats and waits."""
    for n in range(len(network_plan.foldings)):
        beats = sum(count for (_, count), npu in zip(network_plan.ideal, network_plan.mapping) if npu == n)
        assert counters[f"npu{n}_beats"] == frames * beats
        assert sum(count for name, count in counters.items() if name.startswith(f"npu{n}_")) == counters["cycles"]


def check_waits(flow: Result, few: dict[str, int], many: dict[str, int], frames: int) -> None:
    """Beats and waits of a frame of a steady stream, which are those of ``frames`` more of them."""
    for n, waits in flow.npus.items():
        names = {field.name: f"npu{n}_{field.name}" for field in fields(Waits)}
        each = {key: (many.get(name, 0) - few.get(name, 0)) / frames for key, name in names.items()}
        assert Waits(**each) == waits


def check_blocked(design: Design, model: Model, choices: CompileChoices, refusal: str, **stalls: Any) -> None:
    """The refusal names the least spill store with which a network runs, and the one that there is; hardware stops,
    too, and the NPUs that it says wait for each other are those that the flow model names. The program that stops is
    compiled for a large store, which changes nothing in it."""
    bit, manifest = overlay(design)
    least, given = (int(words) for words in BLOCKED.fullmatch(refusal).groups())
    network_plan = plan(model, design.npus, choices)
    whole = system(network_plan, design.npus, stream_bits=design.stream_bits, spill_words=design.spill_words)
    assert given == design.spill_words
    simulate(replace(whole, spill_words=least), FRAMES)
    with pytest.raises(Deadlock):
        simulate(replace(whole, spill_words=least - 1), FRAMES)
    with pytest.raises(Deadlock) as deadlock:
        simulate(whole, FRAMES)
    roomy = Manifest.of(replace(design, spill_words=ROOMY_SPILL), manifest.digest)
    program = compile_model(model, roomy, choices)
    images = random_images(model.network, FRAMES, 1)
    with (
        pytest.raises(SimulationTimeout) as stuck,
        loaded(bit, program, timeout_cycles=50_000, **stalls) as (accelerator, _),
    ):
        accelerator.predict(images, len(images))
    first = str(stuck.value).splitlines()[0]
    assert "a circle of waits: " in first
    assert {int(n) for n in re.findall(r"NPU (\d+) waits for", first)} == set(deadlock.value.npus)


def tally(
    check: Callable[[Pick], str | Iterable[str]], count: int, enough: Mapping[str, int] | None = None
) -> Counter[str]:
    """How often ``check`` says each word of the seeds 0 to ``count`` - 1; of fewer where words were said ``enough``
    times."""
    words: Counter[str] = Counter()
    for seed in range(count):
        if enough and words >= Counter(enough):
            break
        try:
            said = check(Pick(seed))
        except BaseException:
            print(f"seed {seed}")
            raise
        words.update([said] if isinstance(said, str) else said)
    print(words)
    return words
