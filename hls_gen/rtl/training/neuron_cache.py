"""The master's neuron cache: a copy for each reader, and one writer at a time.

    array --.
    vector --+--> register --> copies --> array, operand a, operand b, access
    access --'

The array's results can't wait, so they go first; then those of the master's own arithmetic, then words from outside.
"""

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, any_of, choose, const
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.text import Header

READERS = ("array", "a", "b", "access")
WRITERS = ("array", "vector", "access")
"""The first that has something to write does so."""


def neuron_cache(library: Library, machine: MachineParameters) -> Block:
    """The module ``neuron_cache``.

    Ports ``<reader>_row`` and ``_data``; ``<writer>_write``, ``_write_row``, ``_write_data`` and ``_write_ready``.
    """
    w = machine.form.bits
    row_bits = bits_for(machine.neuron_words - 1)
    header = Header(
        __doc__,
        rate="a read for each reader and a write a cycle",
        latency="1 cycle from a row to its data, 2 from a write to where it can be read",
        parameters={"word_bits": w, "neuron_words": machine.neuron_words},
    )
    b = Block("neuron_cache", header)
    asked = {}
    earlier = []
    for name in WRITERS:
        write = b.input(f"{name}_write", means=f"{name} has something to write")
        place = b.input(f"{name}_write_row", row_bits, means=f"row that {name} writes")
        data = b.input(f"{name}_write_data", w, means=f"what {name} writes")
        if earlier:
            b.output(f"{name}_write_ready", 1, ~any_of(*earlier), means=f"what {name} writes is taken")
        earlier.append(write)
        asked[name] = (write, place, data)

    # # #

    writes = b.reg("writes")
    row = b.reg("row", row_bits, init=None)
    data = b.reg("data", w, init=None)
    chosen_row, chosen = asked["access"][1:]
    for name in ("vector", "array"):
        chosen_row = choose(asked[name][0], asked[name][1], chosen_row, row_bits)
        chosen = choose(asked[name][0], asked[name][2], chosen, w)
    b.on(None, (writes, any_of(*earlier)), (row, chosen_row), (data, chosen))
    for name in READERS:
        b.instance(
            ram(library, w, machine.neuron_words, latency=1),
            f"copy_{name}",
            write=writes,
            write_row=row,
            write_data=data,
            read=const(1, 1),
            read_row=b.input(f"{name}_row", row_bits, means=f"row that {name} reads"),
            read_data=b.output(f"{name}_data", w, means=f"what the row of {name} held a cycle ago"),
        )
    return b
