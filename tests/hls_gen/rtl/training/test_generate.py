"""The generated text: clean, and without multipliers where operands are discrete."""

import re
from functools import partial

import pytest
from veriloggen.core import vtypes as vt

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.check import check
from bitloom.hls_gen.design.training import TOP
from bitloom.hls_gen.rtl.primitives.block import Block, const, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training import generate as generation
from bitloom.hls_gen.rtl.training.converter import converter
from bitloom.hls_gen.rtl.training.corner_turn import corner_turn
from bitloom.hls_gen.rtl.training.generate import training_manifest, training_verilog
from bitloom.hls_gen.rtl.training.inverse_root import inverse_root
from bitloom.hls_gen.rtl.training.pair_converter import pair_converter
from bitloom.hls_gen.rtl.training.product import product_unit
from bitloom.hls_gen.rtl.training.product_table import product_table
from bitloom.hls_gen.rtl.training.quotient import quotient_unit
from bitloom.hls_gen.rtl.training.serial_dot import serial_dot
from bitloom.hls_gen.rtl.training.slave import slave
from bitloom.hls_gen.rtl.training.top import top
from bitloom.hls_gen.rtl.training.word_divider import word_divider
from bitloom.overlay.area.yosys import run_yosys
from bitloom.overlay.virtual.sim import lint
from tests.hls_gen.rtl.bench import text_of

EVERY = {"divider": "words", "converter": "multiplying", "root": "table"}
"""All units that a machine may lack."""
MACHINES = {
    "2 slaves": MachineParameters(slaves=2),
    "1 slave, 1 bit, no multiplier": MachineParameters(slaves=1, code_bits=1, products="shifter"),
    "2 slaves, all units": MachineParameters(slaves=2, **EVERY),
    "2 slaves, tables": MachineParameters(slaves=2, code_bits=2, products="table", divider="codes"),
    "1 slave, 4 bits": MachineParameters(slaves=1, form=WordFormat(4, 1), **EVERY),
    "4 slaves, 32 bits, all tables": MachineParameters(slaves=4, form=WordFormat(32, 20), tables=7, column_words=1),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MACHINES)
def test_lint_is_silent(name):
    text = "\n".join(training_verilog(MACHINES[name], checked=False).values())
    assert lint(text, top=TOP) == []


UNITS = {
    "pair_converter": pair_converter,
    "word_divider": word_divider,
    "inverse_root": inverse_root,
    "quotient_unit": quotient_unit,
    "product_table": product_table,
    "serial_dot": partial(serial_dot, lanes=5),
    "corner_turn": corner_turn,
}
"""Units that a machine may lack."""
UNIT_MACHINES = (
    MachineParameters(**EVERY),
    MachineParameters(**EVERY, form=WordFormat(9, 6), code_bits=1),
    MachineParameters(**EVERY, form=WordFormat(32, 0), code_bits=2),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("machine", UNIT_MACHINES, ids=lambda machine: str(machine.form))
def test_units_alone(name, machine):
    text = text_of(UNITS[name](Library(32, "synthesis"), machine))
    assert lint(text, top=name) == []
    check(text, name)


def test_keeps_the_rules_of_the_check():
    check("\n".join(training_verilog(MACHINES["2 slaves"], checked=False).values()), TOP)


def test_the_same_text_on_every_run():
    machine = MachineParameters(slaves=1)
    first = training_verilog(machine, checked=False)
    training_verilog.cache_clear()
    generation._blank.cache_clear()
    assert training_verilog(machine, checked=False) == first


def test_the_manifest_is_that_of_the_text():
    machine = MACHINES["2 slaves"]
    manifest = training_manifest("x", machine)
    text = "\n".join(training_verilog(machine, checked=False).values())
    assert (manifest.machine, manifest.name) == (machine, "x")
    shown = [int(part, 16) for part in re.findall(r" DIGEST_\d = 32'h([0-9a-f]+);", text)]
    assert shown == [int(manifest.digest[8 * k : 8 * k + 8], 16) for k in range(4)]


def multipliers(block, tmp_path) -> int:
    """Products in the netlist of a module: cells $mul before mapping, and DSP blocks after the step that makes them."""
    (tmp_path / "design.v").write_text(text_of(block))
    top = block.m.name
    commands = [
        f"read_verilog -sv design.v\nhierarchy -top {top}\nproc\nflatten\nopt",
        "tee -o count.txt select -count t:$mul",
        f"synth_xilinx -family xc7 -noiopad -noclkbuf -flatten -top {top} -run begin:map_memory",
        "tee -a count.txt select -count t:DSP48*",
    ]
    run_yosys("\n".join(commands) + "\n", tmp_path, "netlist")
    words = [line.split() for line in (tmp_path / "count.txt").read_text().splitlines()]
    counts = [int(line[0]) for line in words if line[1:2] == ["objects."]]
    assert len(counts) == 2
    return sum(counts)


SIZES = {"slaves": 1, "weight_words": 16, "column_words": 4, "form": WordFormat(12, 7)}
BITS = (1, 2, 3)
"""Widths of codes."""


def discrete(machine: MachineParameters, operand: str) -> Block:
    """The product unit with one operand that is always a code."""
    inner = product_unit(Library(32), machine)
    whole = Block(f"{operand}_is_a_code", reset=False)
    ports = {}
    for name, port in inner.m.io_variable.items():
        if isinstance(port, vt.Input) and name not in ("clk", f"{operand}_coded"):
            ports[name] = whole.input(name, width(port))
        elif not isinstance(port, vt.Input):
            ports[name] = whole.output(name, width(port))
    whole.instance(inner, "unit", **ports, **{f"{operand}_coded": const(1, 1)})
    return whole


def test_the_converter_multiplies_nothing():
    code = re.sub(r"//.*", "", text_of(converter(Library(32), MachineParameters(code_bits=2, **SIZES))))
    assert " * " not in code.replace("@(*)", "")
    assert " * " in text_of(product_unit(Library(32), MachineParameters(code_bits=2, **SIZES)))


@pytest.mark.slow
@pytest.mark.parametrize("code_bits", BITS)
def test_discrete_operands_need_no_multiplier(code_bits, tmp_path):
    """A slave whose products all have a discrete operand; the same slave for continuous ones has a DSP block."""
    without = slave(Library(32), MachineParameters(products="shifter", code_bits=code_bits, **SIZES))
    assert multipliers(without, tmp_path) == 0
    assert multipliers(slave(Library(32), MachineParameters(code_bits=code_bits, **SIZES)), tmp_path) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("code_bits", BITS)
@pytest.mark.parametrize("operand", ["left", "right"])
def test_the_way_of_a_code_passes_no_multiplier(operand, code_bits, tmp_path):
    """Also where the machine has one: of a unit whose operand is always a code, nothing of it is left."""
    machine = MachineParameters(code_bits=code_bits, **SIZES)
    assert multipliers(product_unit(Library(32), machine), tmp_path) >= 2
    assert multipliers(discrete(machine, operand), tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("code_bits", BITS)
def test_a_machine_for_codes_has_no_multiplier(code_bits, tmp_path):
    """With master, controller and tables."""
    machine = MachineParameters(
        products="shifter", code_bits=code_bits, neuron_words=64, instructions=16, tables=1, **SIZES
    )
    assert multipliers(top(machine, "0" * 64), tmp_path) == 0
