"""The command export: a model as a file that other tools read."""

from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.golden.atomic import inside, write_bytes
from bitloom.overlay.exporters.qonnx import to_qonnx

from .options import WRITTEN_FILE, words_or_paths
from .progress import working
from .show import dump, json_option, table


@click.command("export")
@click.argument("network", shell_complete=words_or_paths(networks.names))
@click.option("--qonnx", is_flag=True, required=True, help="As QONNX, which Netron, qonnx and Brevitas users read.")
@click.option("--out", type=WRITTEN_FILE, help="The file.  [default: NETWORK.onnx in the working folder]")
@json_option
def export_command(network: str, qonnx: bool, out: Path | None, as_json: bool) -> None:
    """Write a network, a name of ours or a model file, as QONNX.

    Thresholds and requantisation become MultiThreshold nodes, so nothing is rounded; `bitloom import` of the file
    computes the same.
    """
    model = networks.find(network)
    target = out or inside(Path(), f"{model.network.name}.onnx")
    with working("writing nodes"):
        data = to_qonnx(model)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, data)
    facts = {"network": model.network.name, "format": "QONNX", "file": str(target), "bytes": len(data)}
    if as_json:
        dump(facts)
    else:
        table(model.network.name, {**facts, "bytes": f"{len(data):,}"})
