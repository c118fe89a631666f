"""Programs of networks: for a design that is being built, or for a build that is there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.steps import step

if TYPE_CHECKING:
    from .build import Build


def compiled(
    models: Sequence[Model],
    manifest: Manifest,
    choices: Mapping[str, CompileChoices] | CompileChoices,
    hosts: Mapping[str, Host],
) -> dict[str, Program]:
    """Compile networks for a design; a step for each of them.

    Parameters
    ----------
    models
        The networks, of different names.
    manifest
        Of the design.
    choices
        How all of them are compiled, or each by its name.
    hosts
        What the host does around imported networks, by their names.

    Returns
    -------
    dict
        Network's name -> its program.

    Raises
    ------
    ValueError
        Two networks have one name, or a network doesn't fit the design.
    """
    check_names(manifest.name, [model.network.name for model in models])
    programs = {}
    for model in models:
        name = model.network.name
        with step(f"compiling {name}"):
            how = choices if isinstance(choices, CompileChoices) else choices[name]
            programs[name] = compile_model(model, manifest, how, host=hosts.get(name))
    return programs


def check_names(design: str, names: Sequence[str]) -> None:
    """ValueError if two networks of a design have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{design}: the networks of a design must have different names, got {name} twice")


def choices_for(made: "Build", model: Model, changes: Mapping[str, Any]) -> CompileChoices:
    """How a network is compiled for a build: as the build's networks were, with changes.

    Parameters
    ----------
    made
        The build.
    model
        The network. With the layers of one of the build's networks it gets the mapping of that one; else the compiler
        chooses.
    changes
        Values of fields of `CompileChoices` that replace the build's; what is None stays.
    """
    choices = CompileChoices(map_order=made.map_order, dataflow=made.dataflow, chunk=made.chunk)
    network = replace(model.network, name="network", classes=())
    for name in made.models:
        if replace(made.model(name).network, name="network", classes=()) == network:
            choices = replace(choices, mapping=made.program(name).weighted_mapping)
            break
    return replace(choices, **{key: value for key, value in changes.items() if value is not None})
