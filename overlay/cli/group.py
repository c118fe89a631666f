"""The command ``bitloom``: the group of all commands, each of which has a file of its own."""

import click

from .deferred import DeferredCommands
from .old_names import Commands

COMMANDS = DeferredCommands(
    "bitloom.overlay.cli",
    {
        "accumulate": "accumulate",
        "area": "area",
        "bench": "bench",
        "build": "build",
        "compile": "compiling",
        "crosscheck": "crosscheck",
        "dataflows": "dataflows",
        "demo": "demo",
        "evaluate": "evaluate",
        "explore": "explore",
        "export": "exporting",
        "fuzz": "fuzz",
        "import": "importing",
        "learn": "learn",
        "machine": "machine",
        "map-orders": "map_orders",
        "report": "report",
        "serve": "serve",
        "simulate": "simulate",
        "timing": "timing",
        "train": "train",
    },
)


@click.group(
    cls=Commands,
    commands=COMMANDS,
    old_commands={"orders": "map-orders", "work": "dataflows"},
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name="bitloom")
def bitloom() -> None:
    """Trained low-bit neural networks become FPGA accelerators for PYNQ boards, proved on a laptop."""
