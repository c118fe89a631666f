"""The commands by which a report's build and figures are made again."""

from shlex import join

from bitloom.overlay.build.build import Build


def commands(build: Build, frames: int, given: str | None = None) -> list[str]:
    """Commands for a terminal; ``bitloom build`` only where it made the build.

    frames : of the run.  given : the network as it was named on the command line, None: not at all.
    """
    folder, named = str(build.folder), [given] if given else []
    return [
        *([join(build.command)] if build.command else []),
        *(join(["bitloom", command, folder, *named, "--frames", str(frames)]) for command in ("simulate", "report")),
        join(["bitloom", "area", folder]),
    ]
