"""Imported networks on simulated hardware."""

import numpy as np

from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.run import run


def on_hardware(made, images, folder, **folding):
    """The run of simulated hardware for images of the file, whose outputs are golden's; a folding of the importer's
    tests' own."""
    found = chosen_design(made.model, Wanted(folding=folding or {}))
    build = builds.build(
        folder, found.design(made.model.network.name, [made.model]), [made.model], choices=found.choices
    )
    result = run(build, made.model, made.host.to_input(images, made.model.network.input.shape))
    np.testing.assert_array_equal(result.outputs, result.golden)
    return result
