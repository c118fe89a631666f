"""The order in which weights come down the stream, for one NPU or several (spec B18).

Each NPU has a kernel memory, in which its own layers are placed (weight_placement.py). The packets of a frame follow
each other in the order of the network's layers, some before the frame and the others behind it. How many come before
it is chosen by the flow model; for one NPU by the placement's own estimate. A packet that must wait holds up what is
behind it, also what is for another NPU. Whether that can go on for ever doesn't depend on timing (a Kahn network with
bounded channels), so what the flow model runs to its end can't block under any stalls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.compiler.flow.loader import WeightPacket
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.flow.system import System
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.gearbox import gear, geared
from bitloom.hls_gen.design.memories.memory_map import memory_of

from .flow import Deadlock, Result, simulate
from .plan import Plan
from .streamed_weights import Placement, WeightLayer, WeightStream
from .weight_placement import place

FRAMES = 4
"""Frames that the flow model is run for, to choose an order."""


@dataclass(frozen=True, kw_only=True)
class WeightOrder:
    """How the weights of a network reach the NPUs of a design."""

    placements: tuple[Placement, ...]
    """Where the layers of each NPU lie, and which of them are streamed."""
    packets: tuple[WeightPacket, ...]
    """The packets of a frame, in the order of the stream."""
    before: int
    """How many of them come before the frame."""
    run: Result | None = None
    """What the flow model says of FRAMES frames with them; None where the order was chosen without it."""


def weight_order(plan: Plan, design: Design) -> WeightOrder:
    """Place the layers of each NPU, and choose the order of the stream.

    Parameters
    ----------
    plan
        The network's plan.
    design
        A design with ``stream_weights``.

    Raises
    ------
    ValueError
        A layer is larger than its NPU's kernel memory, or every order blocks. One line.
    """
    network = plan.lowered.model.network.name
    frame = WeightStream(
        bits=design.stream_bits,
        row_words=0,
        frame_words=geared(plan.frame.sent.words, plan.frame.sent.word_bits, design.stream_bits),
        absorbed=design.npus[0].sequencer.tuple_words >= plan.frame.sent.words,
    )
    placements = [_placed(network, plan, design, n, frame) for n in range(len(design.npus))]
    packets = _packets(plan, design, placements)
    if len(placements) == 1:
        return WeightOrder(placements=tuple(placements), packets=packets, before=placements[0].before)
    before, run = _before(network, plan, design, packets)
    return WeightOrder(placements=tuple(placements), packets=packets, before=before, run=run)


def _layers(plan: Plan, n: int) -> list[WeightLayer]:
    """The layers of NPU ``n``, as a placement must know them."""
    return [WeightLayer(planned.layer.name, planned.kernel_rows, planned.beats) for planned in plan.on(n)]


def _placed(network: str, plan: Plan, design: Design, n: int, frame: WeightStream) -> Placement:
    """The placement of NPU ``n``'s layers. Frames enter NPU 0; other NPUs' maps don't come by the stream."""
    layers = _layers(plan, n)
    npu = design.npus[n]
    if not layers:
        return Placement(base=())
    row = _row_words(design, n)
    words, absorbed = (0, True) if n else (frame.frame_words, frame.absorbed)
    stream = WeightStream(bits=frame.bits, row_words=row, frame_words=words, absorbed=absorbed)
    return place(network, layers, npu.array.kernel_rows, stream)


def _row_words(design: Design, n: int) -> int:
    """Stream words of a row of NPU ``n``'s kernel memory. Each row begins with a new stream word."""
    return gear(memory_of(design.npus[n], "kernels").width, design.stream_bits).pieces


def _packets(plan: Plan, design: Design, placements: Sequence[Placement]) -> tuple[WeightPacket, ...]:
    """The packets of a frame, in the order of the network's layers."""
    out = list[WeightPacket]()
    counts = [0] * len(placements)
    for i, n in enumerate(plan.mapping):
        number, counts[n] = counts[n], counts[n] + 1
        if number in placements[n].streamed:
            ahead = placements[n].ahead[placements[n].streamed.index(number)]
            out.append(WeightPacket(i, ahead, plan.layers[i].kernel_rows * _row_words(design, n)))
    return tuple(out)


def _before(network: str, plan: Plan, design: Design, packets: Sequence[WeightPacket]) -> tuple[int, Result | None]:
    """How many packets best come before the frame: with fewest cycles a frame in the flow model; what that says of
    them."""
    best: tuple[int, Result | None] = (0, None)
    reason = ""
    for before in range(len(packets) + 1) if packets else ():
        try:
            run = simulate(_system(plan, design, packets, before), FRAMES)
        except Deadlock as deadlock:
            reason = reason or str(deadlock)
            if best[1]:
                break  # with still more of them before it the frame never comes
            continue
        if best[1] is None or run.cycles_per_frame < best[1].cycles_per_frame:
            best = before, run
    if packets and best[1] is None:
        raise ValueError(f"{network}: some order of the streamed weights must not block, got {reason}")
    return best


def _system(plan: Plan, design: Design, packets: Sequence[WeightPacket], before: int) -> System:
    """The system that runs a plan with these packets."""
    bits = design.stream_bits
    spill = design.spill_words
    return system(plan, design.npus, stream_bits=bits, spill_words=spill, weights=packets, weights_before=before)


def whole_system(plan: Plan, design: Design) -> System:
    """The system that runs a plan on a design, with the weights that come down its stream.

    Parameters
    ----------
    plan
        The network's plan, whose layers fit the design.
    design
        The design.

    Raises
    ------
    ValueError
        As ``weight_order``.
    """
    return _ordered(plan, design, _order(plan, design))


def whole_run(plan: Plan, design: Design, frames: int = FRAMES) -> Result:
    """What the flow model says of so many frames on the system of `whole_system`."""
    order = _order(plan, design)
    if order and order.run and frames == FRAMES:
        return order.run
    return simulate(_ordered(plan, design, order), frames)


def _order(plan: Plan, design: Design) -> WeightOrder | None:
    """The order of the stream; None where weights stay on the device."""
    return weight_order(plan, design) if design.npus[0].loader.stream_weights else None


def _ordered(plan: Plan, design: Design, order: WeightOrder | None) -> System:
    """The system with that order."""
    return _system(plan, design, order.packets, order.before) if order else _system(plan, design, (), 0)
