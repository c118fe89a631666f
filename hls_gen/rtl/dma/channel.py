"""Registers of a channel of the DMA (the map is hls_gen/design/dma.py).

    writes --> CONTROL, ADDRESS, LENGTH --> start: a transfer of so many words --> reader or writer of memory
    STATUS, interrupt <-- end of the transfer and its errors <-------------------------'

A write of LENGTH begins a transfer where the channel runs and has none under way; elsewhere it does nothing. A transfer
with an error ends the run, and only a reset lets the channel run again.
"""

from bitloom.hls_gen.design.dma import CHANNEL, CONTROL, RESET_CONTROL, STATUS, Dma
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    bits,
    const,
    nonzero,
    resize,
    side_by_side,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import field_of, word_of
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import DATA_BITS

WRITES = tuple(f"write_{register.name.lower()}" for register in CHANNEL)
"""Inputs: a register is written."""
ERRORS = ("internal", "slave", "decode")
"""Errors of a transfer, in the order of the bits in STATUS."""


def channel(library: Library, dma: Dma) -> Block:
    """The module ``dma_channel``, one for each direction."""
    header = Header(
        __doc__,
        rate="one transfer at a time",
        latency="2 cycles from a write of LENGTH to start",
        parameters={"stream_bits": dma.stream_bits, "address_bits": dma.address_bits, "length_bits": dma.length_bits},
    )
    b = Block("dma_channel", header)
    write = {name: b.input(name, means="pulse: that register is written") for name in WRITES}
    data = b.input("written", DATA_BITS, means="what is written")
    resetting = b.input("resetting", means="a reset of both channels is under way")
    ended = b.input("ended", means="pulse: the transfer has ended")
    errors = {name: b.input(f"{name}_error", means=f"with ended: STATUS.{name.upper()}") for name in ERRORS}
    moved = b.input("moved", dma.count_bits, means="with ended: words that were moved, which LENGTH shows then")
    start = b.output_reg("start", means="pulse: a transfer begins")
    place = b.output("place", dma.place_bits, means="address of its first word, in words")
    words = b.output("words", dma.count_bits, means="its words, at most")
    irq = b.output("irq")
    shown = {r.name: b.output(r.name.lower(), DATA_BITS, means=f"register {r.name}: {r.description}") for r in CHANNEL}

    # # #

    unit = dma.unit_bits
    b.comment("Buffer: an address and a length of whole words.")
    low = b.reg("address_low", DATA_BITS)
    parts = [low]
    length = b.reg("buffer_bytes", dma.length_bits)
    b.on(write["write_address"], (low, data))
    high_bits = dma.address_bits - DATA_BITS
    if high_bits:
        parts.append(b.reg("address_high", high_bits))
        b.on(write["write_address_msb"], (parts[1], bits(data, 0, high_bits)))
    else:
        b.wire("write_unused", 1, write["write_address_msb"])
    address = b.wire("buffer_address", dma.address_bits, side_by_side(parts))
    shown["ADDRESS"].assign(low)
    shown["ADDRESS_MSB"].assign(resize(parts[1], DATA_BITS) if high_bits else const(0, DATA_BITS))
    shown["LENGTH"].assign(resize(length, DATA_BITS))
    place.assign(bits(address, unit, dma.place_bits))
    words.assign(bits(length, unit, dma.count_bits))

    b.comment("A transfer: from a write of LENGTH to its end.")
    run, active, done = b.reg("run"), b.reg("active"), b.reg("done")
    failures = {name: b.reg(f"{name}_failure") for name in ERRORS}
    failed = b.wire("failed", 1, any_of(*failures.values()))
    halted = b.wire("halted", 1, ~run & ~active)
    begins = b.wire("begins", 1, all_of(write["write_length"], run, ~active, ~resetting))
    judged = b.reg("judged")  # a cycle in which address and length stand
    b.on(None, (judged, begins), (start, 0))
    part = any_of(nonzero(bits(address, 0, unit)), nonzero(bits(length, 0, unit)))
    good = b.wire("good_buffer", 1, all_of(~b.wire("part_of_word", 1, part), nonzero(words)))
    b.on(halted, (done, 0))
    b.on(begins, (active, 1), (done, 0), (length, bits(data, 0, dma.length_bits)))
    b.on(judged & good, (start, 1))
    fails = {name: b.wire(f"fails_{name}", 1, ended & error) for name, error in errors.items() if name != "internal"}
    fails["internal"] = b.wire("fails_internal", 1, any_of(ended & errors["internal"], judged & ~good))
    fault = b.wire("fault", 1, any_of(*fails.values()))
    b.on(ended, (active, 0), (length, side_by_side([const(0, unit), moved])))
    b.on(judged & ~good, (active, 0))
    b.on(ended & ~fault, (done, 1))

    b.comment("CONTROL and STATUS.")
    control = write["write_control"]
    enable = {field: b.reg(f"{field.lower()}_enable") for field in ("DONE_IRQ", "ERROR_IRQ")}
    b.on(control, *[(register, field_of(data, CONTROL.field(field))) for field, register in enable.items()])
    b.on(control, (run, field_of(data, CONTROL.field("RUN")) & ~failed))
    b.on(fault, (run, 0))  # later than a write of CONTROL in the same cycle
    for name in ERRORS:
        b.on(fails[name], (failures[name], 1))
    events = {"DONE_IRQ": ended & ~fault, "ERROR_IRQ": fault}
    pending = {field: b.reg(f"{field.lower()}_pending") for field in events}
    for field, register in pending.items():
        b.on(write["write_status"] & field_of(data, STATUS.field(field)), (register, 0))
        b.on(events[field], (register, 1))  # one that comes while it is acknowledged isn't lost
    irq.assign(any_of(*(pending[field] & enable[field] for field in events)))
    values: dict[str, Signal] = {"RUN": run, "RESET": resetting, **enable}
    values |= {"ONE": const(1, 1), "THRESHOLD": const(CONTROL.field("THRESHOLD").of(RESET_CONTROL), 8)}
    shown["CONTROL"].assign(resize(word_of(CONTROL.fields, values), DATA_BITS))
    status = {"HALTED": halted, "IDLE": done & ~halted, **pending}
    status |= {name.upper(): failures[name] for name in ERRORS}
    shown["STATUS"].assign(resize(word_of(STATUS.fields, status), DATA_BITS))
    return b
