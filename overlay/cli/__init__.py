"""Command line ``bitloom``."""


def main() -> None:
    """Entry point; says in one line what to install where the extras are missing, and that it was interrupted.

    An interrupt may come at any time, most often while packages are imported, which takes a second.
    """
    try:
        _run()
    except KeyboardInterrupt:
        import sys

        sys.stderr.write("bitloom: interrupted\n")
        raise SystemExit(130) from None


def _run() -> None:
    """Import the commands, and run the one that was asked for."""
    import sys

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape")  # paths may have any bytes, and come out as they came in
    try:
        from .group import bitloom
    except ImportError as e:
        missing = (e.name or str(e)).partition(".")[0]
        if missing == "bitloom":  # a mistake of ours, nothing to install
            raise
        raise SystemExit(f'bitloom: the command line needs {missing}: pip install "bitloom[hls,sim,cli]"') from None
    bitloom()
