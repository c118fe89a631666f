"""A build's network with all that compiling it gave."""

from dataclasses import dataclass

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.plan import Plan, plan, plans
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.build import Build


@dataclass(frozen=True)
class Compiled:
    """A network of a build."""

    build: Build
    """The build."""
    model: Model
    """The network, of which the build's program was compiled."""
    program: Program
    """The compiled network."""
    manifest: Manifest
    """What the hardware says of itself."""
    plan: Plan
    """The compiler's plan, of which the program was written."""


def compiled(build: Build, model: Model) -> Compiled:
    """``model`` as the build has it.

    Raises
    ------
    ValueError
        If the build has no such network, compiled it from another model, or in partitions.
    """
    program = build.program_of(model).only_program("a report")
    manifest = Manifest.load(build.bit.with_suffix(".manifest.json"))
    network_plan = plan(model, manifest.npus, build.choices_of(program.name).of_partition)
    return Compiled(build, model, program, manifest, network_plan)


def plans_of(build: Build, model: Model) -> list[Plan]:
    """The compiler's plan of ``model``, or those of its partitions, as the build has it; ValueError as `compiled`."""
    choices = build.choices_of(build.program_of(model).name)
    return plans(model, Manifest.load(build.bit.with_suffix(".manifest.json")).npus, choices)
