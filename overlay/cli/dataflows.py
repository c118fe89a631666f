"""The command dataflows: what input_stationary gains, layer by layer."""

from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.overlay.build.reference_designs import default_npu
from bitloom.overlay.study.dataflows import dataflows

from .options import out_option
from .progress import bar
from .show import dump, grid, json_option, one_line_errors

HEADER = (
    "layer", "kernel groups", "tuple words, output_stationary", "tuple words, input_stationary",
    "cycles gained by input_stationary",
)  # fmt: skip


@click.command("dataflows")
@click.argument("network")
@click.option("--frames", type=click.IntRange(1), default=4, help="Random images to run for each dataflow.")
@out_option(Path("build/dataflows"), "Build folder.")
@json_option
@one_line_errors
def dataflows_command(network: str, frames: int, out: Path, as_json: bool) -> None:
    """Show which layers of NETWORK gain from dataflow input_stationary: tuple memory and cycles, by simulation."""
    model = networks.find(network)
    with bar("dataflows", "programs") as update:
        found = dataflows(model, default_npu(model), out / model.network.name, frames, update)
    if as_json:
        dump(found)
        return
    rows = [
        [
            layer["name"],
            f"{layer['groups']}",
            f"{layer['tuple_words_output_stationary']:,}",
            f"{layer['tuple_words_input_stationary']:,}",
            f"{layer['cycles_gained']:,.1f}",
        ]
        for layer in found["layers"]
    ]
    title = f"{found['network']}: {found['cycles_output_stationary']:,.1f} cycles a frame output_stationary"
    grid(title, HEADER, rows)
