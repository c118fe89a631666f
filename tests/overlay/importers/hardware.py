"""Imported networks on simulated hardware."""

import numpy as np

from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.run import run

from .against import features


def on_hardware(imported, images, folder, **folding):
    """The run of simulated hardware for images of the file, whose outputs are golden's; a folding of the importer's
    tests' own."""
    chosen = chosen_design(imported.model, Wanted(folding=folding or {}))
    build = builds.build(
        folder, chosen.design(imported.model.network.name, [imported.model]), [imported.model], choices=chosen.choices
    )
    result = run(build, imported.model, features(imported, images))
    np.testing.assert_array_equal(result.outputs, result.golden)
    return result
