"""The command bench: a group of six commands, and the first of them by default."""

import click

from bitloom.overlay.cli.command_list import CommandList

from .cpu import cpu_command
from .designs import designs_command
from .golden import golden_command
from .gpu import gpu_command
from .mlperf_tiny import mlperf_tiny_command
from .training import training_command


class _DesignsByDefault(CommandList):
    """A group that runs ``designs`` if the arguments begin with no command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = args and (args[0] in self.commands or args[0] in self.get_help_option_names(ctx))
        return super().parse_args(ctx, args if known else ["designs", *args])


@click.group("bench", cls=_DesignsByDefault)
def bench_command() -> None:
    """Measure designs, MLPerf Tiny or the training machine by simulation, golden or the packed convolution elsewhere.

    bench NAME... is short for bench designs NAME..., and bench alone measures all designs. All take --json.
    """


for command in (designs_command, mlperf_tiny_command, training_command, golden_command, cpu_command, gpu_command):
    bench_command.add_command(command)
