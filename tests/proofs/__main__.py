"""python -m tests.proofs [NAME ...]: carry out the proofs whose names contain one of the words, and print a table."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .carry_out import fault_of
from .catalogue import PROOFS
from .engine import Proof

HEAD = ("proof", "sizes", "method", "breaks refused", "seconds")


def row(proof: Proof, seconds: str) -> str:
    """A row of the table."""
    cells = (proof.name, proof.parameters(), proof.method, str(len(proof.breaks)), seconds)
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Carry out proofs; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("names", nargs="*", help="only proofs whose names contain one of these")
    parser.add_argument("--list", action="store_true", help="print the table without carrying out anything")
    options = parser.parse_args(arguments)
    chosen = [p for p in PROOFS if not options.names or any(name in p.name for name in options.names)]
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    wrong = 0
    for proof in chosen:
        began = time.monotonic()
        fault = ""
        if not options.list:
            with tempfile.TemporaryDirectory() as folder:
                fault = fault_of(proof, Path(folder))
        print(row(proof, "" if options.list else f"{time.monotonic() - began:.0f}"), flush=True)
        if fault:
            wrong += 1
            print(f"{proof.name}: {fault}", file=sys.stderr, flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
