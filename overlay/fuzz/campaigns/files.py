"""Campaign files: damaged files of every kind, each of which must be read, or refused in one line that names it.

A case holds the damaged file itself, compressed. Reading takes no more memory than golden/limits.py says.
"""

import tempfile
import zlib
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path

from bitloom.golden.atomic import write_scratch
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.files import damaged_file, outcome
from bitloom.overlay.fuzz.kinds import KINDS
from bitloom.overlay.fuzz.pick import Pick

BATCH = 25
"""Cases that a process does at a time."""
LONGEST = 64 << 20
"""Bytes of a damaged file at most, when a case is run."""


class FileCampaign:
    """Damaged files."""

    def case(self, pick: Pick) -> Case:
        """A damaged file of any kind."""
        kind = pick.of(list(KINDS))
        data = damaged_file(kind, pick.integer(0, 2**32 - 1))
        return {"kind": kind, "file": b64encode(zlib.compress(data, 1)).decode()}

    def run(self, case: Case) -> tuple[str, str]:
        """Let the reader read the damaged file; files.py judges what it does."""
        kind = case["kind"]
        path = Path(_folder(kind).name) / KINDS[kind].file
        write_scratch(path, zlib.decompressobj().decompress(b64decode(case["file"]), LONGEST))
        result = outcome(kind, path)
        rule = "must be read, or refused in one line"
        return result.verdict, "" if result.good else f"{kind}: {rule}, got: {result.message}"


@cache
def _folder(kind: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder with a valid file of that kind, and what belongs to it."""
    folder = tempfile.TemporaryDirectory(prefix="bitloom-fuzz-")
    KINDS[kind].write(Path(folder.name))
    return folder


def campaign() -> FileCampaign:
    """The campaign."""
    return FileCampaign()
