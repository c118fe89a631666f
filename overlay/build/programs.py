"""Programs of several networks for one design."""

from collections.abc import Mapping, Sequence

from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_network
from bitloom.hls_gen.compiler.lowering import Lowered
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.steps import step


def compiled(
    models: Sequence[Model],
    manifest: Manifest,
    choices: Mapping[str, CompileChoices],
    hosts: Mapping[str, Host],
    lowered: Mapping[str, Sequence[Lowered]] | None = None,
) -> dict[str, CompiledNetwork[Program]]:
    """Compile networks for a design; a step for each of them.

    Parameters
    ----------
    models
        The networks, of different names.
    manifest
        Of the design.
    choices
        How each of them is compiled, by its name.
    hosts
        The host's part of each imported network, by the networks' names.
    lowered
        The lowered layers of each network's programs, by its name, as sizing lowered them for this design; None: the
        networks are lowered here.

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
    programs = dict[str, CompiledNetwork[Program]]()
    for model in models:
        name = model.network.name
        with step(f"compiling {name}"):
            given = lowered[name] if lowered else ()
            programs[name] = compile_network(model, manifest, choices[name], host=hosts.get(name), lowered=given)
    return programs


def check_names(design: str, names: Sequence[str]) -> None:
    """ValueError if two networks of a design have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{design}: the networks of a design must have different names, got {name} twice")
