"""The command map-orders: what each map order of a network costs."""

import click

from bitloom.golden import zoo as networks
from bitloom.overlay.build.reference_designs import default_npu
from bitloom.overlay.study.map_orders import TOTALS, map_orders

from .show import dump, grid, json_option, one_line_errors


@click.command("map-orders")
@click.argument("network")
@json_option
@one_line_errors
def map_orders_command(network: str, as_json: bool) -> None:
    """Compare the map orders of NETWORK: tuples and table bits of each layer.

    A layer's figures are the least that its schedule needs; those in all are of the memories as they are built, by
    which "auto" decides.

    NETWORK is a name of ours or a model file (.npz).
    """
    model = networks.find(network)
    found = map_orders(model, default_npu(model))
    if as_json:
        dump(found)
        return
    both = list(found["totals"])
    header = ["layer", *(f"{order}: {what}" for order in both for what in ("tuples", "table bits"))]
    keys = ("tuples", "table_bits")
    rows = [[layer["name"], *(f"{layer[order][key]:,}" for order in both for key in keys)] for layer in found["layers"]]
    grid(f"{found['network']}: map orders", header, rows)
    rows = [[key.replace("_", " "), *(f"{found['totals'][order][key]:,}" for order in both)] for key in TOTALS]
    grid(f"in all; auto takes {found['auto']}", ["", *both], rows)
