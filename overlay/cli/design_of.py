"""The design that a command is about: a build's, a reference design, or one that fits a network."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitloom.golden import zoo as networks
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, reference_design

from .kept import loaded
from .options import wanted_of


def design_of(source: str, options: Mapping[str, Any]) -> Design:
    """The design of a build's folder, or one that fits a network; ``options`` are those of ``design_options``."""
    wanted = wanted_of(options)
    if Path(source).is_dir():
        if wanted != Wanted():
            raise ValueError(f"{source}: a build has its folding, give no options of it")
        return loaded(Path(source)).design
    name = reference_design(source).network if source in REFERENCE_DESIGNS else source
    model = networks.find(name, REFERENCE_DESIGNS)
    named = source if source in REFERENCE_DESIGNS and source != name else None
    chosen = chosen_design(model, replace(wanted, design=named))
    models = chosen.models() if source in REFERENCE_DESIGNS else [model]
    return chosen.design(model.network.name, models)
