"""Top module of the training machine: stream in, stream out, registers, as the inference engine has them.

s_axis --> loader --> controller --> master with slaves --> m_axis
               `------ data ------------^
s_axi  --> registers
"""

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.training import FAULT_BITS, STREAM_BITS, TOP
from bitloom.hls_gen.rtl.primitives.block import Block, all_of, any_of, bits, choose, nonzero, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.context import place
from bitloom.hls_gen.rtl.shell.top import AXI

from .controller import controller
from .loader import loader
from .master import master
from .registers import registers


def top(machine: MachineParameters, digest: str) -> Block:
    """The top module.

    Parameters
    ----------
    machine : MachineParameters
    digest : str
        64 hex digits, for the registers.

    Returns
    -------
    Block
        Ports: AXI4-Stream slave ``s_axis`` and master ``m_axis``, 32 bits; AXI4-Lite slave ``s_axi``; ``irq``.
    """
    library = Library(STREAM_BITS)
    header = Header(
        __doc__,
        rate="a stream word a cycle each way",
        latency="that of the program: see CYCLES",
        parameters={"slaves": machine.slaves, "word_bits": machine.form.bits},
    )
    b = Block(TOP, header)
    stream = {
        "s_axis_tdata": b.input("s_axis_tdata", STREAM_BITS),
        "s_axis_tvalid": b.input("s_axis_tvalid"),
        "s_axis_tready": b.output("s_axis_tready"),
        "s_axis_tlast": b.input("s_axis_tlast"),
    }
    m_data = b.output("m_axis_tdata", STREAM_BITS)
    m_valid = b.output("m_axis_tvalid")
    m_ready = b.input("m_axis_tready")
    m_last = b.output("m_axis_tlast")
    axi = {
        f"s_axi_{name}": (b.input if direction == "in" else b.output)(f"s_axi_{name}", w) for name, direction, w in AXI
    }
    irq = b.output("irq")

    # # #

    soft_reset = b.wire("soft_reset")
    reset = b.wire("reset", 1, any_of(b.rst, soft_reset))
    b.comment("From the stream to the slaves: packets, instructions, what the units do.")
    load = place(b, library.get(loader, library, machine), "loader", "loader_", rst=reset, **stream)
    told = place(
        b,
        library.get(controller, library, machine),
        "controller",
        "",
        rst=reset,
        start=load["start"],
        first=load["first"],
        data_left=load["data_left"],
        write=load["write"],
        write_bank=load["write_bank"],
        write_row=load["write_row"],
        write_data=load["write_data"],
        finished=load["finished"],
    )
    block = library.get(master, library, machine)
    common = {name: told[name] for name in block.m.io_variable if name in told}
    data = {f"data_{part}": load[f"data_{part}"] for part in ("valid", "data", "ready")}
    results = {"results_data": m_data, "results_valid": m_valid, "results_ready": m_ready, "results_last": m_last}
    master_ports = place(b, block, "master", "master_", rst=reset, **common, **data, **results)
    told["no_data"].assign(all_of(load["dry"], any_of(master_ports["wanted"], load["wants_program"])))
    told["program_done"].assign(load["program_done"])
    load["program_start"].assign(told["program_start"])
    load["program_first"].assign(bits(told["field_d"], 0, width(load["program_first"])))
    load["program_rows"].assign(told["field_rows"])
    load["stopped"].assign(nonzero(told["fault"]))
    b.comment("What the registers show and count; of two faults the packet's is shown.")
    # after a packet's fault the program may still come to one of its own, which follows from it; never the other way
    fault = b.wire("fault_code", FAULT_BITS, choose(nonzero(load["fault"]), load["fault"], told["fault"], FAULT_BITS))
    given = b.wire("word_given", 1, all_of(m_valid, m_ready))
    b.instance(
        library.get(registers, library, machine, digest),
        "registers",
        rst=b.rst,
        **axi,
        irq=irq,
        soft_reset=soft_reset,
        running=load["running"],
        finished=load["finished"],
        idle=load["idle"],
        word_taken=load["word_taken"],
        word_given=given,
        result_left=b.wire("result_left", 1, given & m_last),
        fault=fault,
        fault_place=told["fault_place"],
        beat=master_ports["beat"],
        vector_result=master_ports["vector_result"],
    )
    return b
