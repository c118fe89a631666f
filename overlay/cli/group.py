"""The command ``bitloom``: the group of all commands, each of which has a file of its own."""

import click

from bitloom.golden.distribution import DISTRIBUTION

from .deferred import CommandList, DeferredCommands

COMMANDS = DeferredCommands(
    "bitloom.overlay.cli",
    {
        "area": "area",
        "bench": "bench",
        "build": "build",
        "compile": "compiling",
        "demo": "demo",
        "deploy": "deploy",
        "evaluate": "evaluate",
        "explore": "explore",
        "export": "exporting",
        "fuzz": "fuzz",
        "go": "go",
        "import": "importing",
        "learn": "learn",
        "machine": "machine",
        "report": "report",
        "serve": "serve",
        "simulate": "simulate",
        "timing": "timing",
        "train": "train",
    },
)


@click.group(
    cls=CommandList,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name=DISTRIBUTION)
def bitloom() -> None:
    """Trained low-bit neural networks become FPGA accelerators for PYNQ boards, proved on a laptop."""
