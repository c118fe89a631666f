"""A build's network with all that compiling it gave."""

from dataclasses import dataclass

from bitloom.golden.file import model_digest
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.build import Build


@dataclass(frozen=True)
class Compiled:
    """A network of a build.

    Attributes
    ----------
    build
        The build.
    model
        The network, of which the build's program was compiled.
    program
        The compiled network.
    manifest
        What the hardware says of itself.
    plan
        The compiler's plan, of which the program was written.
    """

    build: Build
    model: Model
    program: Program
    manifest: Manifest
    plan: Plan


def compiled(build: Build, model: Model) -> Compiled:
    """``model`` as the build has it.

    Raises
    ------
    ValueError
        If the build has no such network, or compiled it from another model.
    """
    program = build.program(model.network.name)
    digest = model_digest(model)
    if digest != program.model_digest:
        raise ValueError(
            f"{build.folder}: {program.name} was compiled from {program.model_digest[:16]}, "
            f"got the model {digest[:16]}: build again"
        )
    manifest = Manifest.load(build.bit.with_suffix(".manifest.json"))
    network_plan = plan(model, manifest.npus, build.choices_of(program.name))
    return Compiled(build, model, program, manifest, network_plan)
