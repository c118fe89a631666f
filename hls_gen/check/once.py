"""The rules of this folder, held to a text once: the cache remembers which texts keep to them."""

from functools import cache
from pathlib import Path

from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest

from . import check
from .verilog import parser_version


def check_once(text: str, top: str) -> None:
    """`check`, unless the same text kept to the same rules before.

    Parameters
    ----------
    text
        Modules, one after another.
    top
        Name of the top module.

    Raises
    ------
    DesignError
        A rule is broken; of that nothing is remembered.
    """
    try:
        cached_folder("checked", digest(_rules(), top, text), lambda folder: check(text, top))
    except OSError:  # no place to remember it
        check(text, top)


@cache
def _rules() -> str:
    """Digest of all that `check` depends on beside its text: the files of this folder, and the parser."""
    return digest(*parser_version(), *(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
