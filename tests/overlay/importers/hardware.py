"""Imported networks on simulated hardware."""

from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.run import run


def on_hardware(made, images, folder, **folding):
    """Outputs of simulated hardware for images of the file, and golden's; a folding of the importer's tests' own."""
    result = run_on_hardware(made, images, folder, **folding)
    return result.outputs, result.golden


def run_on_hardware(made, images, folder, **folding):
    """A run of simulated hardware; as ``on_hardware``."""
    found = chosen_design(made.model, Wanted(folding=folding or {}))
    build = builds.build(
        folder, found.design(made.model.network.name, [made.model]), [made.model], choices=found.choices
    )
    return run(build, made.model, made.host.to_input(images, made.model.network.input.shape))
