"""The command deploy: a folder that is copied to a board and runs there."""

from pathlib import Path
from shlex import quote

import click

from bitloom.overlay.deploy.deploy import Deployed, deploy

from .options import FILE, FOLDER, WRITTEN_FOLDER
from .progress import step_lines, working
from .show import dump, json_option, table
from .subject import loaded, tell_kept_in


@click.command("deploy")
@click.argument("build", metavar="FOLDER", type=FOLDER)
@click.option("--to", "folder", type=WRITTEN_FOLDER, help="Folder to write.  [default: FOLDER/board]")
@click.option(
    "--bitstream", type=FILE, help="The .bit file.  [default: the newest in FOLDER/vivado/output, else simulation's]"
)
@click.option("--transform", help="How driver.py makes input values of pixels, as evaluate takes it.")
@click.option("--c", "with_c", is_flag=True, help="Also the driver in C, for boards without pynq.")
@json_option
def deploy_command(
    build: Path, folder: Path | None, bitstream: Path | None, transform: str | None, with_c: bool, as_json: bool
) -> None:
    """Write a folder for the board with all that the build in FOLDER needs there: bitstream, programs, driver script.

    The folder has the bitstream with its .hwh and manifest, each network's program, bitloom itself as a wheel, a driver
    script that classifies images and checks every bit of some against golden, a README with the commands, and
    checksums. Where Vivado has made no bitstream yet it has the simulation overlay, for the virtual board.
    """
    place = folder or build / "board"
    with step_lines(), working("collecting what the board needs"):
        done = deploy(loaded(build), place, bitstream=bitstream, transform=transform, with_c=with_c)
    tell_kept_in(done.folder, done.kept)
    for path in done.left_out:
        click.echo(f"bitloom: {path}: left out, as it isn't of the build's design", err=True)
    for name in done.not_in_c:
        click.echo(
            f"bitloom: {name}: left out by the example in C, which takes networks with one output, of one map", err=True
        )
    if as_json:
        dump(
            {
                "folder": str(done.folder),
                "files": list(done.files),
                "bit": done.bit,
                "simulation": done.simulation,
            }
        )
        return
    _show(done)


def _show(done: Deployed) -> None:
    """Print what was written, and what comes next."""
    bitstream = f"{done.bit}, for the virtual board alone" if done.simulation else done.bit
    table(str(done.folder), {"bitstream": bitstream, "files": f"{len(done.files)}, see README.md there"})
    virtual = " --virtual" if done.simulation else ""
    where = "" if done.simulation else ", on the board"
    click.echo(f"next{where}: python3 {quote(str(done.folder / 'driver.py'))} --check{virtual}")
