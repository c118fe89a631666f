"""The command ``bitloom``: the group of all commands, each of which has a file of its own."""

import click

from .accumulate import accumulate_command
from .area import area_command
from .bench import bench_command
from .build import build_command
from .crosscheck import crosscheck_command
from .dataflows import dataflows_command
from .demo import demo_command
from .evaluate import evaluate_command
from .explore import explore_command
from .exporting import export_command
from .fuzz import fuzz_command
from .importing import import_command
from .learn import learn_command
from .machine import machine_command
from .map_orders import map_orders_command
from .old_names import Commands
from .progress import add_verbosity
from .report import report_command
from .serve import serve_command
from .simulate import simulate_command
from .timing import timing_command
from .train import train_command

COMMANDS = (
    accumulate_command,
    area_command,
    bench_command,
    build_command,
    crosscheck_command,
    dataflows_command,
    demo_command,
    evaluate_command,
    explore_command,
    export_command,
    fuzz_command,
    import_command,
    learn_command,
    machine_command,
    map_orders_command,
    report_command,
    serve_command,
    simulate_command,
    timing_command,
    train_command,
)


@click.group(
    cls=Commands,
    old_commands={"orders": "map-orders", "work": "dataflows"},
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name="bitloom")
def bitloom() -> None:
    """Trained low-bit neural networks become FPGA accelerators for PYNQ boards, proved on a laptop."""


for command in COMMANDS:
    add_verbosity(command)
    bitloom.add_command(command)
