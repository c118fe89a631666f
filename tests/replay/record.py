"""What the default tier compares with: ``python -m tests.replay.record`` writes verilog.json and programs.json.

- verilog.json: a digest of each module of the Verilog that tests/hls_gen/rtl/test_text.py names;
- programs.json: the lines of the first random networks of each kind (networks.py), with digests of the sized design and
  of the program, and the cycles by the flow model.

A refactoring leaves both as they are. Of a change of hardware, of the compiler or of a format they say how far it goes.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from bitloom.golden.atomic import write_text

from . import networks

VERILOG = Path(__file__).parent / "verilog.json"
PROGRAMS = Path(__file__).parent / "programs.json"
EACH = 2
"""Networks of each kind."""


def digests(modules: Mapping[str, str]) -> dict[str, str]:
    """A digest of each module, by its name."""
    return {name: sha256(text.encode()).hexdigest()[:8] for name, text in modules.items()}


def programs(kind: str) -> list[str]:
    """The lines of the first networks of a kind."""
    return [networks.line(kind, number) for number in range(EACH)]


def main() -> None:
    """Write both files."""
    from tests.hls_gen.rtl.test_text import RECORDED, texts

    verilog = {"-".join(case): digests(texts(*case)) for case in RECORDED}
    write_text(VERILOG, json.dumps(verilog, indent=1) + "\n")
    write_text(PROGRAMS, json.dumps({kind: programs(kind) for kind in networks.KINDS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
