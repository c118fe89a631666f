"""The command bench: a group of six commands, and the first of them by default."""

import click

from bitloom.overlay.cli.deferred import CommandList, DeferredCommands

COMMANDS = DeferredCommands(
    "bitloom.overlay.cli.bench",
    {
        "designs": "designs",
        "mlperf-tiny": "mlperf_tiny",
        "training": "training",
        "golden": "golden",
        "cpu": "cpu",
        "gpu": "gpu",
    },
)


class _DesignsByDefault(CommandList):
    """A group that runs ``designs`` if the arguments begin with no command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = args and (args[0] in self.commands or args[0] in self.get_help_option_names(ctx))
        return super().parse_args(ctx, args if known else ["designs", *args])


@click.group("bench", cls=_DesignsByDefault, commands=COMMANDS)
def bench_command() -> None:
    """Measure designs, MLPerf Tiny or the training machine by simulation, golden or the packed convolution elsewhere.

    bench NAME... is short for bench designs NAME..., and bench alone measures all designs. All take --json.
    """
