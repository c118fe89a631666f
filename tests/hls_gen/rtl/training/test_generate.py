"""The generated text: clean, and without multipliers where operands are discrete."""

import pytest

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.check import check
from bitloom.hls_gen.design.training import TOP
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.converter import converter
from bitloom.hls_gen.rtl.training.generate import training_verilog
from bitloom.hls_gen.rtl.training.slave import slave
from bitloom.overlay.area.yosys import run_yosys
from bitloom.overlay.virtual.sim import lint

MACHINES = {
    "2 slaves": MachineParameters(slaves=2),
    "1 slave, 1 bit, no multiplier": MachineParameters(slaves=1, code_bits=1, multiplier=False),
    "4 slaves, 32 bits, all tables": MachineParameters(slaves=4, form=WordFormat(32, 20), tables=7, column_words=1),
}


@pytest.mark.parametrize("name", MACHINES)
def test_lint_is_silent(name):
    text = "\n".join(training_verilog(MACHINES[name], checked=False).values())
    assert lint(text, top=TOP) == []


def test_keeps_the_rules_of_the_check():
    check("\n".join(training_verilog(MACHINES["2 slaves"], checked=False).values()), TOP)


def test_the_same_text_on_every_run():
    machine = MachineParameters(slaves=1)
    first = training_verilog(machine, checked=False)
    training_verilog.cache_clear()
    assert training_verilog(machine, checked=False) == first


def multipliers(block, tmp_path) -> int:
    """Products in the synthesised netlist of a module: cells $mul before mapping, and DSP blocks after it."""
    (tmp_path / "design.v").write_text("\n".join(block.modules().values()))
    top = block.m.name
    commands = [
        f"read_verilog -sv design.v\nhierarchy -top {top}\nproc\nflatten\nopt",
        "tee -o count.txt select -count t:$mul",
        f"synth_xilinx -family xc7 -noiopad -noclkbuf -flatten -top {top}",
        "tee -a count.txt select -count t:DSP48*",
    ]
    run_yosys("\n".join(commands) + "\n", tmp_path, "netlist")
    words = [line.split() for line in (tmp_path / "count.txt").read_text().splitlines()]
    counts = [int(line[0]) for line in words if line[1:2] == ["objects."]]
    assert len(counts) == 2
    return sum(counts)


SIZES = {"slaves": 1, "weight_words": 16, "column_words": 4, "code_bits": 2, "form": WordFormat(12, 7)}


def test_the_converter_needs_no_multiplier(tmp_path):
    assert multipliers(converter(Library(32), MachineParameters(**SIZES)), tmp_path) == 0


@pytest.mark.slow
def test_discrete_operands_need_no_multiplier(tmp_path):
    """A slave whose products all have a discrete operand; the same slave for continuous ones has a DSP block."""
    without = slave(Library(32), MachineParameters(multiplier=False, **SIZES))
    assert multipliers(without, tmp_path) == 0
    assert multipliers(slave(Library(32), MachineParameters(**SIZES)), tmp_path) >= 2
