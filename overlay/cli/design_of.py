"""The design that a command is about: a build's, a reference design, or one that fits a network."""

from pathlib import Path

from bitloom.golden import zoo as networks
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, chosen_design, reference_design

from .kept import loaded


def design_of(source: str, folding: dict[str, int], stream_bits: str | None, map_order: str | None) -> Design:
    """The design of a build's folder, or one that fits a network."""
    if Path(source).is_dir():
        if folding or stream_bits or map_order:
            raise ValueError(f"{source}: a build has its folding, give no options of it")
        return loaded(Path(source)).design
    name = reference_design(source).network if source in REFERENCE_DESIGNS else source
    model = networks.find(name)
    made = chosen_design(model, source if source in REFERENCE_DESIGNS else None, folding, stream_bits, map_order)
    models = made.models() if source in REFERENCE_DESIGNS else [model]
    return made.design(model.network.name, models)
