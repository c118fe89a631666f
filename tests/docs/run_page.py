"""python -m tests.docs.run_page PAGE [--slow]: run the blocks of a page in order, in the working directory.

Python blocks share their names. Blocks of C and C++ are whole files, which are compiled for the headers of driver/c.
The first thing that goes wrong ends the run; the message names page and line.
"""

import contextlib
import doctest
import io
import subprocess
import sys
from pathlib import Path

from .blocks import ROOT, RUN, Block, blocks

COMPILED = {"c": ("c", "-std=c99"), "cpp": ("c++", "-std=c++11")}
"""How a block is compiled, by its language."""
OUTPUT = doctest.OutputChecker()


def run(page: Path, slow: bool) -> None:
    """Run ``page``; ``slow`` : slow blocks too. AssertionError or the block's own error where it fails."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    for block in blocks(page):
        if block.language in RUN:
            printed = None
            if block.mark == "" or (block.mark == "slow" and slow):
                printed = run_python(block, names) if block.language == "python" else _run_program(block)
        elif block.mark == "prints" and printed is not None:
            same = OUTPUT.check_output(block.text, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert same, f"{block.name}: must be what is printed, got:\n{printed}"


def run_python(block: Block, names: dict[str, object]) -> str:
    """Output of the block."""
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def _run_program(block: Block) -> str:
    """Standard output of the block."""
    command = ["bash", "-euo", "pipefail"]
    if block.language in COMPILED:
        flags = ("-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{ROOT / 'driver/c'}", "-fsyntax-only", "-")
        command = ["g++", "-x", *COMPILED[block.language], *flags]
    done = subprocess.run(command, input=block.text, capture_output=True, text=True)
    assert done.returncode == 0, f"{block.name}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve(), slow="--slow" in sys.argv[2:])
