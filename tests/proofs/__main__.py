"""python -m tests.proofs [NAME ...]: carry out the proofs whose names contain one of the words, and print a table."""

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from .carry_out import fault_of
from .catalogue import PROOFS
from .engine import Proof

HEAD = ("proof", "sizes", "method", "breaks refused")
"""Columns of the table; the command adds one when it carries proofs out: processor seconds."""


def row(proof: Proof, *more: str) -> str:
    """A row of the table, with further cells behind it."""
    cells = (proof.name, proof.parameters(), proof.method, str(len(proof.breaks)), *more)
    return f"| {' | '.join(cells)} |"


def processor_seconds() -> float:
    """Seconds on a processor of this process and those it has waited for, to which other work adds nothing."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main(arguments: list[str]) -> int:
    """Carry out proofs; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("names", nargs="*", help="only proofs whose names contain one of these")
    parser.add_argument("--list", action="store_true", help="print the table without carrying out anything")
    options = parser.parse_args(arguments)
    chosen = [p for p in PROOFS if not options.names or any(name in p.name for name in options.names)]
    head = HEAD if options.list else (*HEAD, "processor seconds")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    wrong = 0
    for proof in chosen:
        if options.list:
            print(row(proof))
            continue
        began = processor_seconds()
        with tempfile.TemporaryDirectory() as folder:
            fault = fault_of(proof, Path(folder))
        print(row(proof, f"{processor_seconds() - began:.0f}"), flush=True)
        if fault:
            wrong += 1
            print(f"{proof.name}: {fault}", file=sys.stderr, flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
