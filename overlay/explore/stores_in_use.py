"""Skip stores and the spill store of a design, as large as the flow model ever fills them."""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import Result, skips_of, spill_of
from bitloom.hls_gen.compiler.lowering import Lowered, lowered_for
from bitloom.hls_gen.compiler.partitions import partitions
from bitloom.hls_gen.compiler.plan import plan_lowered
from bitloom.hls_gen.compiler.sizing import FLOW_FRAMES, with_skip_words
from bitloom.hls_gen.compiler.weight_order import whole_run
from bitloom.hls_gen.design.design import LEAST_SPILL_WORDS, Design

ROOM_FOR_ALL = 1 << 22
"""Words of a skip store, or of the spill store, that never gets full."""


def run_flow(model: Model, choices: CompileChoices, design: Design, frames: int = FLOW_FRAMES) -> list[Result]:
    """Run the flow model for a network on a design.

    Returns
    -------
    list of Result
        Cycles, latency, waits and fill levels, of each of its programs.

    Raises
    ------
    Deadlock
        If the design can't finish a frame.
    """
    of_partition = choices.of_partition
    program_models = partitions(model, choices.partitions, design.npus)
    programs = [lowered_for(program_model.model, design.npus, of_partition) for program_model in program_models]
    return run_lowered(programs, choices, design, frames)


def run_lowered(
    programs: Sequence[Lowered], choices: CompileChoices, design: Design, frames: int = FLOW_FRAMES
) -> list[Result]:
    """Run the flow model for the lowered layers of a network's programs on a design; the results are those of
    `run_flow`."""
    of_partition = choices.of_partition
    return [whole_run(plan_lowered(each, design.npus, of_partition), design, frames) for each in programs]


def has_stores(design: Design) -> bool:
    """Whether there is a skip store or a spill store."""
    return bool(design.spill_words) or any(npu.has_skip for npu in design.npus)


def with_stores(design: Design, flows: Sequence[Result]) -> Design:
    """The design with skip stores and spill store, where it has any, as large as was in use in what the flow model
    found for each network; nobody waited for room there."""
    words = [max(column) for column in zip(*(skips_of(flow, len(design.npus)) for flow in flows))]
    spill = design.spill_words and max(LEAST_SPILL_WORDS, *map(spill_of, flows))
    return replace(design, npus=with_skip_words(design.npus, words), spill_words=spill)
