"""One direction of the map, for taps by counters (raster.py): where the window lies in it, and where the next one will.

lead, room, place --> whether the place is the last one of its line, and what all of them are in the next window
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, choose, eq, sub, width

from .layer_row import AxisRow


@dataclass(frozen=True)
class Axis:
    """One direction of the map: where the window at hand lies, and where the next one will."""

    place: Signal
    """Place of the tap at hand in the kernel, 0 at the left or the top; PLACE_BITS."""
    lead: Signal
    """Places of the kernel before the map: the first place with a tap; PLACE_BITS."""
    led: Signal
    """There are such places. A register."""
    room: Signal
    """Place of the kernel that lies on the map's last column or row; SIDE_BITS."""
    at: Signal
    """Words from the map's beginning to the window's first position on the map, of y to the first of that line; address
    bits."""
    final: Signal
    """``place`` is the last one with a tap: at the kernel's or at the map's end. A register."""
    first_final: Signal
    """Value of ``final`` at the window's first place. A register."""
    beyond: Signal
    """The next window begins before the map too. A register."""
    next_place: Signal
    """The place after this one; PLACE_BITS."""
    next_lead: Signal
    next_room: Signal
    next_at: Signal
    """next_lead, next_room, next_at: lead, room and at of the next window in this direction."""
    place_final: Signal
    lead_final: Signal
    next_beyond: Signal
    """place_final, lead_final, next_beyond: what ``final`` is at the next place, what first_final and beyond are of the
    next window."""


def axis_of(b: Block, name: str, row: AxisRow, origin: Signal) -> Axis:
    """Registers and next values of direction ``name`` ("x" or "y"), of a layer with the fields ``row``.

    ``origin`` is where the map's line begins that the window's first position is on, the map itself for y: ``at`` of a
    window that begins before the map.
    """
    address_bits = width(origin)
    place = b.reg(f"{name}_place", PLACE_BITS)
    lead = b.reg(f"{name}_first", PLACE_BITS)
    room = b.reg(f"{name}_room_now", SIDE_BITS)
    at = b.reg(f"{name}_at", address_bits)
    led, final, first_final, beyond = (b.reg(f"{name}_{flag}") for flag in ("led", "final", "first_final", "beyond"))
    # the window after one with a lead moves by less than a stride on the map: its first position was cut off
    moved = b.wire(f"{name}_moved", address_bits, choose(led, row.cross, row.step, address_bits))
    less = b.wire(f"{name}_first_less", PLACE_BITS, sub(lead, row.stride, PLACE_BITS))
    next_place = b.wire(f"{name}_place_next", PLACE_BITS, add(place, 1, PLACE_BITS))
    # where the next window begins before the map its lead is a stride less, and so is its room; it has a place more
    next_final = choose(beyond, eq(lead, room), eq(room, row.stride) | eq(row.kernel_minus_1, 0), 1)
    return Axis(
        place=place,
        lead=lead,
        led=led,
        room=room,
        at=at,
        final=final,
        first_final=first_final,
        beyond=beyond,
        next_place=next_place,
        next_lead=b.wire(f"{name}_first_next", PLACE_BITS, choose(beyond, less, 0, PLACE_BITS)),
        next_room=b.wire(f"{name}_room_next", SIDE_BITS, sub(room, row.stride, SIDE_BITS)),
        next_at=b.wire(f"{name}_at_next", address_bits, choose(beyond, origin, at + moved, address_bits)),
        place_final=ends(next_place, row, room),
        lead_final=b.wire(f"{name}_final_next", 1, next_final),
        next_beyond=b.wire(f"{name}_beyond_next", 1, beyond & (less > row.stride)),
    )


def ends(place: Signal, row: AxisRow, room: Signal) -> Signal:
    """Whether a place is the last one with a tap: at the kernel's or at the map's end."""
    return any_of(eq(place, row.kernel_minus_1), eq(place, room))
