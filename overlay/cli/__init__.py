"""Command line ``bitloom``."""

import codecs
import sys
from typing import NoReturn

from bitloom.golden.distribution import pip_install
from bitloom.golden.reading.file import system_words


def main() -> None:
    """Entry point; says in one line what to install where extras are missing, and what standard output can't take.

    An interrupt may come at any time, most often while packages are imported, which takes a second.
    """
    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        interrupted()
    except OSError as e:  # of standard output: commands say their own
        sys.stdout = None  # type: ignore[assignment]  # Python would fail at the same again at its end
        raise SystemExit(f"bitloom: {system_words(e)}") from None


def interrupted() -> NoReturn:
    """Say that the command was interrupted, and end with the exit status of one that was."""
    sys.stderr.write("bitloom: interrupted\n")
    raise SystemExit(130) from None


def _run() -> None:
    """Import the commands, and run the one that was asked for."""
    codecs.register_error("bitloom", _unencodable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="bitloom")
    try:
        from .group import bitloom

        bitloom()
    except ImportError as e:
        if e.name is None:  # ours, with what to do
            raise SystemExit(f"bitloom: {e}") from None
        missing = e.name.partition(".")[0]
        if missing == "bitloom":  # a mistake of ours, nothing to install
            raise
        raise SystemExit(f"bitloom: the command line needs {missing}: {pip_install('hls', 'sim', 'cli')}") from None


def _unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Text that is written for a character that the terminal's encoding lacks, and where encoding goes on.

    Paths may have any bytes, which come out as they came in; letters of names become escapes such as ``\\xe9``.
    """
    if isinstance(error, UnicodeEncodeError):
        error.end = error.start + 1
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)
