"""The order in which weights come down the stream, for one NPU or several (spec B18).

Each NPU has a kernel memory, in which its own layers are placed (weight_placement.py). The packets of a frame follow
each other in the order of the network's layers, some before the frame and the others behind it. How many come before
it is chosen by the flow model; for one NPU by the placement's own estimate. A packet that must wait holds up what is
behind it, also what is for another NPU. Whether that can go on for ever doesn't depend on timing (a Kahn network with
bounded channels), so what the flow model runs to its end can't block under any stalls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

ORDER_FRAMES = 4
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
    """Result of the flow model for ORDER_FRAMES frames with these packets; None where the order was chosen without the
    model."""


def weight_order(plan: Plan, design: Design) -> WeightOrder | None:
    """Place the layers of each NPU, and choose the order of the stream. None where weights stay on the device.

    Parameters
    ----------
    plan
        The network's plan, whose layers fit the design.
    design
        The design.

    Raises
    ------
    ValueError
        A layer is larger than its NPU's kernel memory, or every order blocks. One line.
    """
    if not design.npus[0].loader.stream_weights:
        return None
    network = plan.lowered.model.network.name
    placements = tuple(_placed(network, plan, design, n) for n in range(len(design.npus)))
    packets = _packets(plan, design, placements)
    order = WeightOrder(placements=placements, packets=packets, before=placements[0].before)
    return order if len(placements) == 1 else _fastest(network, plan, design, order)


def _placed(network: str, plan: Plan, design: Design, n: int) -> Placement:
    """The placement of NPU ``n``'s layers. Frames enter NPU 0; other NPUs' maps don't come by the stream."""
    layers = [WeightLayer(planned.layer.name, planned.kernel_rows, planned.beats) for planned in plan.on(n)]
    if not layers:
        return Placement(base=())
    npu = design.npus[n]
    frame = plan.frame.frame_layout
    stream = WeightStream(
        bits=design.stream_bits,
        row_words=_row_words(design, n),
        frame_words=0 if n else geared(frame.words, frame.word_bits, design.stream_bits),
        absorbed=n > 0 or npu.sequencer.tuple_words >= frame.words,
    )
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


def _fastest(network: str, plan: Plan, design: Design, order: WeightOrder) -> WeightOrder:
    """The order with as many packets before the frame as take fewest cycles a frame in the flow model."""
    fastest = replace(order, before=0)
    reason = ""
    for before in range(len(order.packets) + 1) if order.packets else ():
        each = replace(order, before=before)
        try:
            run = simulate(_system(plan, design, each), ORDER_FRAMES)
        except Deadlock as deadlock:
            reason = reason or str(deadlock)
            if fastest.run:
                break  # with still more of them before it the frame never comes
            continue
        if fastest.run is None or run.cycles_per_frame < fastest.run.cycles_per_frame:
            fastest = replace(each, run=run)
    if order.packets and fastest.run is None:
        raise ValueError(f"{network}: some order of the streamed weights must not block, got {reason}")
    return fastest


def _system(plan: Plan, design: Design, order: WeightOrder | None) -> System:
    """The system that runs a plan on a design, with weights in this order."""
    return system(
        plan,
        design.npus,
        stream_bits=design.stream_bits,
        spill_words=design.spill_words,
        weights=order.packets if order else (),
        weights_before=order.before if order else 0,
    )


def whole_system(plan: Plan, design: Design) -> System:
    """The system that runs a plan on a design, with the weights that come down its stream; parameters and errors as of
    `weight_order`."""
    return _system(plan, design, weight_order(plan, design))


def whole_run(plan: Plan, design: Design, frames: int = ORDER_FRAMES) -> Result:
    """The flow model's result for so many frames on the system of `whole_system`."""
    order = weight_order(plan, design)
    if order and order.run and frames == ORDER_FRAMES:
        return order.run
    return simulate(_system(plan, design, order), frames)
