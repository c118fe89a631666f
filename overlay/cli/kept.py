"""A build as commands read it: messages about the user's files in its folder, and the model that NETWORK means."""

from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.overlay.build import build as builds

MOST = 20
"""Files that are named at most."""


def tell_kept(build: builds.Build) -> None:
    """Name the files that a build kept, a line each, on standard error."""
    for file in build.kept[:MOST]:
        if file.now == file.path:
            said = "it was changed, and the build has no such file any more"
        else:
            said = f"a file of the build takes its place; it is {file.now} now"
        click.echo(f"bitloom: {build.folder}: {file.path} is kept: {said}", err=True)
    if len(build.kept) > MOST:
        click.echo(f"bitloom: {build.folder}: {len(build.kept) - MOST} more files are kept", err=True)


def loaded(folder: Path) -> builds.Build:
    """The build in ``folder``. If a killed build had to be finished first, its kept files are named."""
    build = builds.load(folder)
    tell_kept(build)
    return build


def model_of(build: builds.Build, network: str | None) -> Model:
    """The model that a command's NETWORK means: that of the build's network of this name, or a model file (.npz).

    Without NETWORK it is the first network of the build.
    """
    if network and Path(network).suffix == ".npz":
        return networks.find(network)
    return build.model(network or next(iter(build.programs)))
