"""The command machine: a training machine for the virtual board, for Vivado, and what it takes of an FPGA."""

from pathlib import Path
from typing import Any

import click

from bitloom.golden.discrete.machine.parameters import CONVERTERS, DIVIDERS, PRODUCTS, ROOTS, MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design.training import TOP
from bitloom.hls_gen.rtl.training.generate import training_verilog
from bitloom.overlay.area.synthesis import Area, area_of
from bitloom.overlay.area.yosys import bare
from bitloom.overlay.build.training import build_training_machine
from bitloom.overlay.platform.board_file import find_board
from bitloom.overlay.platform.boards import CLOCK_MHZ
from bitloom.overlay.platform.target import BoardTarget

from .area import show_area
from .options import board_option, out_option
from .progress import working
from .show import dump, json_option, table

DEFAULT = MachineParameters()


@click.command("machine")
@click.option("--name", default="training", help="Name of the build.")
@click.option("--slaves", type=int, default=DEFAULT.slaves, help="Slaves, a power of two from 1 to 64.")
@click.option("--word-bits", type=int, default=DEFAULT.form.bits, help="Bits of a word.")
@click.option("--fraction", type=int, default=DEFAULT.form.fraction, help="Bits of its fraction.")
@click.option("--code-bits", type=int, default=DEFAULT.code_bits, help="Bits of the widest code, 1 to 3.")
@click.option("--tables", type=int, default=DEFAULT.tables, help="Tables of codes, 1 to 7.")
@click.option(
    "--products",
    type=click.Choice(PRODUCTS),
    default=DEFAULT.products,
    help="Multiplier: of two words, too. Shifter: one is a code. Table: both are codes, in slaves.",
)
@click.option("--divider", type=click.Choice(DIVIDERS), default=DEFAULT.divider, help="What COMPUTE DIVIDE divides by.")
@click.option(
    "--converter",
    type=click.Choice(CONVERTERS),
    default=DEFAULT.converter,
    help="Multiplying: converts by chance between the two nearest codes, too.",
)
@click.option("--root", type=click.Choice(ROOTS), default=DEFAULT.root, help="What COMPUTE INVERSE_ROOT has.")
@click.option("--instructions", type=int, default=DEFAULT.instructions, help="Instructions of the instruction cache.")
@click.option("--neuron-words", type=int, default=DEFAULT.neuron_words, help="Words of the master's neuron cache.")
@click.option("--weight-words", type=int, default=DEFAULT.weight_words, help="Rows of a slave's weight cache.")
@click.option("--column-words", type=int, default=DEFAULT.column_words, help="Neurons of a layer in one slave.")
@board_option("Also sources for its bitstream.")
@click.option("--clock-mhz", type=float, default=CLOCK_MHZ, help="Clock of the machine.")
@click.option("--area", "with_area", is_flag=True, help="Also LUTs, registers, block RAM, DSPs and levels by yosys.")
@out_option(Path("build/training"), "Folder of the build.")
@json_option
def machine_command(
    name: str,
    word_bits: int,
    fraction: int,
    board_name: str | None,
    clock_mhz: float,
    with_area: bool,
    out: Path,
    as_json: bool,
    **others: Any,
) -> None:
    """Generate a training machine: Verilog, manifest, and an overlay for the virtual board.

    With --board also the sources for that board's bitstream, for a computer with Vivado. TrainingMachine of
    bitloom.driver.training_machine drives either.
    """
    machine = MachineParameters(form=WordFormat(word_bits, fraction), **others)
    target = BoardTarget(board=find_board(board_name) if board_name else None, clock_mhz=clock_mhz)
    with working("generating Verilog"):
        build = build_training_machine(out, name, machine, target)
    estimate: Area | None = None
    if with_area:
        with working("synthesis (minutes)"):
            estimate = area_of(bare("\n".join(training_verilog(machine).values())), TOP)
    files = {"bit": str(build.bit), "digest": build.digest}
    if build.sources is not None:
        files["sources"] = str(build.sources)
    if as_json:
        dump({**files, **({"area": estimate.to_dict()} if estimate else {})})
        return
    table(f"{name}: {out}", files)
    if estimate:
        show_area(estimate, paths=5)
