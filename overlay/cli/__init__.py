"""Command line ``bitloom``."""


def main() -> None:
    """Entry point; says in one line what to install where the extras are missing."""
    try:
        from .group import bitloom
    except ImportError as e:
        missing = (e.name or str(e)).partition(".")[0]
        raise SystemExit(f'bitloom: the command line needs {missing}: pip install "bitloom[hls,sim,cli]"') from None
    bitloom()
