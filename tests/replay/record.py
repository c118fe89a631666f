"""The cycles that the default tier compares with: ``python -m tests.replay.record`` writes cycles.json.

It has the cycles, by the flow model, of the first random networks of each kind (networks.py), or the refusal.
"""

import json
from pathlib import Path

from bitloom.golden.atomic import write_text

from . import networks

CYCLES = Path(__file__).parent / "cycles.json"
EACH = 2
"""Networks of each kind."""


def cycles(kind: str) -> list[str]:
    """The lines of the first networks of a kind, without the digests of design and program."""
    lines = [networks.line(kind, number) for number in range(EACH)]
    return [line[line.find("cycles") :] if line.startswith("design") else line for line in lines]


def main() -> None:
    """Write the file."""
    write_text(CYCLES, json.dumps({kind: cycles(kind) for kind in networks.KINDS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
