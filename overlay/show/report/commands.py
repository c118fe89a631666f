"""The commands by which a report's build and figures are made again."""

from shlex import join

from bitloom.overlay.build.build import Build


def commands(build: Build, frames: int, given: str | None = None) -> list[str]:
    """Commands for a terminal that make a report's build and figures again.

    Parameters
    ----------
    build
        The build; ``bitloom build`` is among the commands only where it made the build.
    frames
        Of the run.
    given
        The network as the command line named it; None: not at all.
    """
    folder = str(build.folder)
    named = [given] if given else []
    return [
        *([join(build.command)] if build.command else []),
        *(join(["bitloom", command, folder, *named, "--frames", str(frames)]) for command in ("simulate", "report")),
        join(["bitloom", "area", folder]),
    ]
