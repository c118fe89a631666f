"""Name of this package for pip, and the commands that add extras to the package.

The distribution is ``bitloom-fpga``, because ``bitloom`` on PyPI is another project's; the package that Python imports
is ``bitloom``.
"""

import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

DISTRIBUTION = "bitloom-fpga"
"""The name that pip knows."""
PYNQ_ALONE = "pip install --no-deps pynq pynqmetadata pynqutils"
"""The command that installs pynq without what it asks for, which the extra "sim" has: pynq 4.0 and earlier ask for
numpy 1, which pip doesn't find for Python 3.13 and later."""


def version() -> str:
    """Version of the installed package, which pyproject.toml says; "" for a checkout that nobody installed."""
    try:
        return version_of(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


def pip_install(*extras: str) -> str:
    """The command that adds extras to the installed package, such as ``pip install 'bitloom-fpga[import]'``. With
    Python 3.13 and later the extra "sim" takes two commands: `PYNQ_ALONE` is the second one.

    pip reads the extras from the installed package itself. So the command is the same for a package from PyPI, for a
    wheel, and for a clone (``pip install -e .``), and an index is asked for the extras' packages alone.
    """
    command = f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"
    return f"{command} && {PYNQ_ALONE}" if "sim" in extras and sys.version_info >= (3, 13) else command
