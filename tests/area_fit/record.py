"""Record the area of reference designs by Yosys: ``python -m tests.area_fit.record [NAME ...]``.

It synthesises the designs, minutes each, and writes areas.json, and to coefficients.json the shares of pairs and the
area model's error on these designs. What was synthesised is found again in the cache.
"""

import json

import click

from bitloom.golden.atomic import write_text
from bitloom.overlay.area.synthesis import area
from bitloom.overlay.area.yosys import yosys_version
from bitloom.overlay.area_model.estimate import FILE, coefficients
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import one_line_errors
from bitloom.overlay.cli.subject import design_of

from .refit import RECORDED, on_recorded, show, with_pairs

KEYS = ("lut", "lutram", "ff", "bram36", "dsp", "pairs")
"""Figures that are recorded."""


def recorded(name: str) -> dict[str, float]:
    """The area of a reference design by Yosys, as ``bitloom area NAME`` prints it."""
    total = area(design_of(name, {})).total
    return {key: getattr(total, key) for key in KEYS}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(REFERENCE_DESIGNS)), metavar="[NAME]...")
@one_line_errors
def main(names: tuple[str, ...]) -> None:
    """Record the area of reference designs, of all by default."""
    areas = json.loads(RECORDED.read_text()) | {"made_with": f"yosys {yosys_version()}"}
    names = names or tuple(REFERENCE_DESIGNS)
    with bar("synthesis", "designs") as update:
        for done, name in enumerate(names, 1):
            areas[name] = recorded(name)
            update(done, len(names))
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in areas.items())
    write_text(RECORDED, "{\n" + ",\n".join(lines) + "\n}\n")
    model = with_pairs(coefficients())
    write_text(FILE, json.dumps(model, indent=1) + "\n")
    show("reference designs", on_recorded(model))


if __name__ == "__main__":
    main()
