"""Run a tool from a YoWASP wheel in a process of its own, which ends when this process does, however that ends.

A synthesis takes minutes. Were this process killed, the tool would go on for nobody. So the tool's standard input is a
pipe that nobody writes to: the system closes its other end with this process, and a thread beside the tool waits for
that.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ENTRY = """
import os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from {package} import {function}
sys.exit({function}(sys.argv[1:]))
"""


def run_tool(package: str, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool and wait for it.

    Parameters
    ----------
    package
        The Python package that it comes with, ``yowasp_TOOL``; its function is ``run_TOOL``.
    arguments
        Of its command line.
    folder
        Where it runs; it sees relative paths only.

    Returns
    -------
    subprocess.CompletedProcess
        Exit status, and what it said.
    """
    entry = ENTRY.format(package=package, function=package.replace("yowasp_", "run_"))
    ours, theirs = os.pipe()[::-1]
    try:
        return subprocess.run(
            [sys.executable, "-c", entry, *arguments],
            stdin=theirs,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=os.environ,
        )
    finally:
        os.close(theirs)
        os.close(ours)
