"""The H-tree: a branch copies beats downwards and adds what comes up (C22).

    down --register--+--> branch or slave 0 --.
                     '--> branch or slave 1 --+--> sum --register--> up

A branch of level 1 has two slaves, one of level n two branches of level n - 1. The sums are exact.
"""

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.block import Block, any_of, const
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .port_means import BEAT, SETTINGS
from .slave import slave


def branch(library: Library, machine: MachineParameters, level: int) -> Block:
    """The module of a branch with 2^level slaves below.

    Parameters
    ----------
    level : int
        0: a slave.

    Returns
    -------
    Block
        Module ``branch_<level>``, or ``slave``.
    """
    if level == 0:
        return library.get(slave, library, machine)
    header = Header(
        __doc__,
        rate="a beat a cycle down, a sum a cycle up",
        latency="1 cycle down, 1 cycle up",
        parameters={"level": level, "slaves": 1 << level},
    )
    b = Block(f"branch_{level}", header)
    beat = {name: b.input(f"down_{name}", w, means=BEAT[name]) for name, w in facts.beat_widths(machine).items()}
    settings = {name: b.input(name, w, means=SETTINGS[name]) for name, w in facts.setting_widths(machine).items()}
    number = b.input("number", facts.slave_bits(machine), means="number of the first slave below")
    valid = b.output_reg("up_valid", means="up_data is of use")
    data = b.output_reg("up_data", facts.sum_bits(machine), init=None, means="the sum of both sides")

    # # #

    b.comment("Down: a register, and both sides have the same beat.")
    down = {}
    for name, signal in beat.items():
        w = facts.beat_widths(machine)[name]
        down[name] = b.reg(f"beat_{name}", w, init=0 if name == "kind" else None)
        b.on(None, (down[name], signal))
    b.comment("Both sides: slaves, or branches of the level below; and up: the sum of what they give.")
    sides = []
    for side in (0, 1):
        ports = b.wire(f"valid_{side}"), b.wire(f"data_{side}", facts.sum_bits(machine))
        side_number = number | const(side << (level - 1), facts.slave_bits(machine))
        b.instance(
            library.get(branch, library, machine, level - 1),
            f"side_{side}",
            number=b.wire(f"number_{side}", facts.slave_bits(machine), side_number),
            up_valid=ports[0],
            up_data=ports[1],
            **settings,
            **{f"down_{name}": signal for name, signal in down.items()},
        )
        sides.append(ports)
    b.on(None, (valid, any_of(sides[0][0], sides[1][0])), (data, sides[0][1] + sides[1][1]))
    return b
