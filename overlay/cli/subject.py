"""Subject of a command: networks and reference designs by name, model files, builds by their folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from bitloom.golden import zoo as networks
from bitloom.golden.host.file import load as load_host
from bitloom.golden.host.file import path_of
from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.folder import KeptFile
from bitloom.overlay.build.programs import check_names
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS

from .options import wanted_of

MOST = 20
"""Kept files of a build that are named at most."""


@dataclass(frozen=True)
class Subject:
    """The networks and the reference design that NETWORK|DESIGN names."""

    name: str
    """That of the reference design, or of the network."""
    models: list[Model]
    """Networks that the design is for, at least one."""
    design: str | None
    """Name of a reference design; None: the design that has the network's name."""
    weights: str
    """Name of the network whose weights the first model has."""

    @property
    def model(self) -> Model:
        """The first network."""
        return self.models[0]


def subject_of(names: Sequence[str], design: str | None = None, named: bool = True) -> Subject:
    """The subject that the words of a command line name.

    Parameters
    ----------
    names
        A reference design or a network, a name of ours or a model file (.npz); then further networks.
    design
        Name of the reference design that the networks are for.
    named
        Whether the first word may name a reference design.
    """
    first = names[0]
    rest = [networks.find(name) for name in names[1:]]
    if first in REFERENCE_DESIGNS and named:
        reference = REFERENCE_DESIGNS[first]
        # The design of a network's own name is its default: nobody asked for it by that name.
        asked = first if first != reference.network else None
        subject = Subject(first, [*reference.models(), *rest], asked, reference.network)
    else:
        model = networks.find(first, REFERENCE_DESIGNS)
        subject = Subject(model.network.name, [model, *rest], design, first)
    check_names(subject.name, [model.network.name for model in subject.models])
    return subject


def hosts_of(given: Sequence[str], models: Sequence[Model]) -> dict[str, Host]:
    """The host's part of each imported network, by the networks' names, from a file beside the model file.

    Parameters
    ----------
    given
        Names of networks of ours, or paths of model files.
    models
        The networks; more than ``given`` where the first name stands for several, as a reference design does.
    """
    hosts = {}
    for text, model in zip(reversed(given), reversed(models)):
        if text.endswith(".npz") and path_of(text).exists():
            hosts[model.network.name] = load_host(path_of(text), model)
    return hosts


def design_of(source: str, options: Mapping[str, Any]) -> Design:
    """The design of a build's folder, or that of a NETWORK|DESIGN; ``options`` are those of ``design_options``."""
    wanted = wanted_of(options)
    if Path(source).is_dir():
        if wanted != Wanted():
            raise ValueError(f"{source}: a build has its folding, give no options of it")
        return loaded(Path(source)).design
    subject = subject_of([source])
    chosen = chosen_design(subject.model, replace(wanted, design=subject.design))
    return chosen.design(subject.model.network.name, subject.models)


def loaded(folder: Path) -> builds.Build:
    """The build in ``folder``. If a killed build had to be finished first, its kept files are named."""
    build = builds.load(folder)
    tell_kept(build)
    return build


def tell_kept(build: builds.Build) -> None:
    """Name the files that a build kept, a line each, on standard error."""
    tell_kept_in(build.folder, build.kept)


def tell_kept_in(folder: Path, kept: Sequence[KeptFile]) -> None:
    """Name the files of the user's that were kept in a folder, a line each, on standard error."""
    for file in kept[:MOST]:
        if file.now == file.path:
            said = "it was changed, and the build has no such file any more"
        else:
            said = f"a file of the build takes its place; it is {file.now} now"
        click.echo(f"bitloom: {folder}: {file.path} is kept: {said}", err=True)
    if len(kept) > MOST:
        click.echo(f"bitloom: {folder}: {len(kept) - MOST} more files are kept", err=True)


def model_of(build: builds.Build, network: str | None) -> Model:
    """The model that a command's NETWORK means: that of the build's network of this name, or a model file (.npz).

    Without NETWORK it is the first network of the build.
    """
    if network and Path(network).suffix == ".npz":
        return networks.find(network)
    return build.model(network or next(iter(build.programs)))
