"""A build as a command reads it: what it says of files of the user's that lay there, and which model is meant."""

from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.overlay.build import build as builds

MOST = 20
"""Files that are named at most."""


def tell_kept(made: builds.Build) -> None:
    """Name the files that a build kept, a line each, on standard error."""
    for file in made.kept[:MOST]:
        if file.now == file.path:
            said = "it was changed, and the build has no such file any more"
        else:
            said = f"a file of the build takes its place; it is {file.now} now"
        click.echo(f"bitloom: {made.folder}: {file.path} is kept: {said}", err=True)
    if len(made.kept) > MOST:
        click.echo(f"bitloom: {made.folder}: {len(made.kept) - MOST} more files are kept", err=True)


def loaded(folder: Path) -> builds.Build:
    """The build in ``folder``. If a build that was killed had to be ended first, the files are named that it kept."""
    made = builds.load(folder)
    tell_kept(made)
    return made


def model_of(made: builds.Build, network: str | None) -> Model:
    """The model that a command's NETWORK means: that of the build's network of this name, or a model file (.npz).

    Without NETWORK it is the first network of the build.
    """
    if network and Path(network).suffix == ".npz":
        return networks.find(network)
    return made.model(network or next(iter(made.programs)))
