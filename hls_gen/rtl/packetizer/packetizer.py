"""Makes FRAME packets of a raw stream, in front of a device (docs/how-to/own-block-design.md).

    s_axis (packets from a DMA) ------+--> m_axis: the device
    s_axis_raw --> raw_frames: -------'
                   a header and a frame
    s_axi --> registers

A reset by CONTROL drops the frame under way: its packet ends unfinished, so that the device needs a reset, too. Where
the raw stream stands in its frame is still known then, and the next frame is a whole one.

Parts: raw_frames.py in hls_gen/rtl/packetizer; axi_lite.py in hls_gen/rtl/shell.
"""

from bitloom.hls_gen.design.headers import NUMBER_BITS
from bitloom.hls_gen.design.packetizer import (
    CONTROL,
    REGISTERS,
    STATUS,
    TRANSFER_FRAMES,
    Packetizer,
)
from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    any_of,
    bits,
    choose,
    const,
    eq,
    resize,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import field_of, word_of
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import DATA_BITS, axi_lite
from bitloom.hls_gen.rtl.shell.context import place

from .raw_frames import raw_frames

TOP = "bitloom_packetizer"
"""Name of the module."""


def packetizer(library: Library, p: Packetizer) -> Block:
    """The module ``bitloom_packetizer``."""
    frames = library.get(raw_frames, library, p)
    header = Header(
        __doc__, rate=frames.header.rate, latency=frames.header.latency, parameters=frames.header.parameters
    )
    b = Block(TOP, header)
    bus = axi_lite(b)
    streams = {}
    for name, width in frames.port_widths.items():
        if name.startswith(("s_axis_", "m_axis_")):
            make = b.output if name in ("s_axis_tready", *_FORWARD) else b.input
            streams[name] = make(name, width)
    raw = {
        "raw_data": b.input("s_axis_raw_tdata", p.raw_bits, means="a beat: its values, each in a lane, the first low"),
        "raw_valid": b.input("s_axis_raw_tvalid", means="there is a beat"),
        "raw_ready": b.output("s_axis_raw_tready", means="the beat is taken"),
    }
    video = p.marks == "video"
    raw_last = b.input("s_axis_raw_tlast", means="a line's last beat" if video else "a frame's last beat")
    irq = b.output("irq")

    # # #

    b.comment("Writes of registers.")
    write = {}
    for r in REGISTERS:
        address = b.localparam(f"{r.name}_ADDRESS", r.offset, ADDRESS_BITS, base=16)
        if r.access != "RO":
            write[r.name] = bus.write(b, f"write_{r.name.lower()}", address)
    reset_written = field_of(bus.write_data, CONTROL.field("RESET"))
    reset = b.wire("reset", 1, any_of(b.rst, write["CONTROL"] & reset_written))

    b.comment("Frames.")
    run = b.reg("run")
    signature = b.reg("signature", DATA_BITS)
    number = b.reg("number", DATA_BITS)
    frames_bits = TRANSFER_FRAMES.field("FRAMES").width
    transfer_frames, transfer_place = b.reg("transfer_frames", frames_bits), b.reg("transfer_place", frames_bits)
    following = b.wire("following_place", frames_bits, add(transfer_place, 1, frames_bits))
    if video:
        begins = b.input("s_axis_raw_tuser", means="a frame's first beat")
        b.wire("line_end_unused", 1, raw_last)
    else:
        begins = b.reg("begins", init=1)  # the beat before ended a frame
        b.on(raw["raw_valid"] & raw["raw_ready"], (begins, raw_last))
    inside = place(
        b,
        frames,
        "frames",
        "frames_",
        rst=reset,
        run=run,
        signature=signature,
        number=bits(number, 0, NUMBER_BITS),
        last=b.wire("last_of_transfer", 1, eq(following, transfer_frames)),
        begins=begins,
        **streams,
        **raw,
    )
    b.on(inside["ended"], (number, add(number, 1, DATA_BITS)))
    b.on(inside["ended"], (transfer_place, choose(eq(following, transfer_frames), 0, following, frames_bits)))

    b.comment("Registers. What is written counts more than what the frames do in the same cycle, but for an error.")
    errors = {"SHORT": b.reg("short_error"), "LONG": b.reg("long_error")}
    interrupt = b.reg("error_irq")
    b.on(write["CONTROL"], (run, field_of(bus.write_data, CONTROL.field("RUN"))))
    b.on(write["CONTROL"], (interrupt, field_of(bus.write_data, CONTROL.field("ERROR_IRQ"))))
    b.on(write["SIGNATURE"], (signature, bus.write_data))
    b.on(write["NUMBER"], (number, bus.write_data))
    b.on(write["TRANSFER_FRAMES"], (transfer_frames, bits(bus.write_data, 0, frames_bits)), (transfer_place, 0))
    for name, error in errors.items():
        b.on(write["STATUS"] & field_of(bus.write_data, STATUS.field(name)), (error, 0))
    for name, error in errors.items():
        b.on(inside[name.lower()], (error, 1), (run, 0))
    b.on(reset, (transfer_place, 0), *((error, 0) for error in errors.values()))
    irq.assign(interrupt & any_of(*errors.values()))

    b.comment("Reads.")
    control = {"RUN": run, "ERROR_IRQ": interrupt}
    status = {"BUSY": inside["busy"], **errors}
    values: dict[str, Signal] = {
        "CONTROL": resize(word_of(CONTROL.fields, control), DATA_BITS),
        "STATUS": resize(word_of(STATUS.fields, status), DATA_BITS),
        "SIGNATURE": signature,
        "NUMBER": number,
        "TRANSFER_FRAMES": resize(transfer_frames, DATA_BITS),
        "BEATS": const(p.beats, DATA_BITS),
    }
    shown: Signal = const(0, DATA_BITS)
    for r in REGISTERS:
        address = b.localparam(f"{r.name}_ADDRESS", r.offset, ADDRESS_BITS, base=16)
        shown = choose(eq(bus.read_address, address), values[r.name], shown, DATA_BITS)
    bus.shown.assign(shown)
    bus.can_show.assign(const(1, 1))
    return b


_FORWARD = ("m_axis_tvalid", "m_axis_tdata", "m_axis_tlast")
