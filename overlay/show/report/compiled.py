"""A build's network with all that compiling it gave."""

from dataclasses import dataclass

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.partitions import program_name
from bitloom.hls_gen.compiler.plan import Plan, plans
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.build import Build


@dataclass(frozen=True)
class Compiled:
    """A network of a build."""

    build: Build
    """The build."""
    model: Model
    """The network, of which the build's programs were compiled."""
    network: CompiledNetwork[Program]
    """The compiled network."""
    manifest: Manifest
    """The manifest, which describes the hardware."""
    plans: tuple[Plan, ...]
    """The compiler's plan of each program, of which it was written, in the order in which programs run."""

    @property
    def names(self) -> list[str]:
        """Names of the programs of a network in partitions: the layer with which each begins, and the number of its
        slice. "" where there is one program."""
        prefix = program_name(self.network.name, "")
        return [each.name.removeprefix(prefix) if len(self.plans) > 1 else "" for each in self.network.programs]


def compiled(build: Build, model: Model) -> Compiled:
    """``model`` as the build has it.

    Raises
    ------
    ValueError
        If the build has no such network, or compiled it from another model.
    """
    network = build.program_of(model)
    manifest = build.manifest
    return Compiled(build, model, network, manifest, tuple(plans(model, manifest.npus, build.choices_of(network.name))))
