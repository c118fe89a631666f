"""Docstrings as data: headers of the Verilog, grammars of Pyverilog and pycparser. ``python -OO`` drops them."""

import sys


def check_docstrings(name: str) -> None:
    """Check that this Python keeps docstrings.

    Parameters
    ----------
    name
        Name of the package that needs them.

    Raises
    ------
    ImportError
        Under ``python -OO`` or PYTHONOPTIMIZE=2.
    """
    if sys.flags.optimize > 1:
        raise ImportError(f"{name}: needs docstrings, which python -OO drops: use python -O (PYTHONOPTIMIZE=1) at most")
