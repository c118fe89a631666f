"""Campaign files: damaged files of every kind, each of which must be read, or refused in one line that names it.

A case holds the damaged file itself, compressed. Reading takes no more memory than golden/limits.py says.

    path = folder / KINDS["model"].file
    path.write_bytes(damaged_file("model", seed=7))
    print(outcome("model", path))
"""

import tempfile
import tracemalloc
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bitloom.golden.atomic import write_scratch
from bitloom.golden.limits import FILE_TIMES, MB, READ_MB
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.damage import damaged
from bitloom.overlay.fuzz.kinds import KINDS
from bitloom.overlay.fuzz.pick import Pick

LARGEST = 64 << 20
"""Bytes of a damaged file at most, when a case is run."""
EXPECTED = (ValueError, OSError)
"""Errors that a reader may raise."""
LONGEST = 600
"""Characters of a message at most, the path not counted."""
GOOD = ("read", "refused")
"""Verdicts that are no fault of a reader."""


@dataclass(frozen=True)
class Outcome:
    """How a reader ended with a file."""

    verdict: str
    """"read"; "refused", with one line that names the file; "unclear", refused with more than a line or without the
    name; "hungry", when it took more memory than the limit; or "crashed", with any other exception."""
    message: str = ""
    """Of the exception; "" for "read"."""

    @property
    def good(self) -> bool:
        """Whether the reader did what it promises."""
        return self.verdict in GOOD


@cache
def valid_file(kind: str) -> bytes:
    """Content of a valid file of that kind, one of KINDS; the same each time."""
    with tempfile.TemporaryDirectory(prefix="bitloom-fuzz-") as folder:
        path = Path(folder) / KINDS[kind].file
        KINDS[kind].write(path)
        return path.read_bytes()


def damaged_file(kind: str, seed: int) -> bytes:
    """Content of a damaged file.

    Parameters
    ----------
    kind
        One of KINDS.
    seed
        The same seed damages in the same way.
    """
    return damaged(valid_file(kind), np.random.default_rng([seed, *kind.encode()]))


def outcome(kind: str, path: Path) -> Outcome:
    """Let the reader of a kind read a file, and judge what it does.

    Parameters
    ----------
    kind
        One of KINDS.
    path
        The file, with the others that ``KINDS[kind].write`` wrote beside it where it needs these.
    """
    most = max(READ_MB.value * MB, FILE_TIMES * path.stat().st_size)
    tracemalloc.start()
    try:
        KINDS[kind].read(path)
        result = Outcome("read")
    except EXPECTED as e:
        result = Outcome("refused" if _clear(str(e), path) else "unclear", str(e))
    except Exception as e:  # that is what is looked for
        result = Outcome("crashed", f"{type(e).__name__}: {e}")
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return result if taken <= most else Outcome("hungry", f"{taken / MB:,.0f} MB; {result.message}")


def _clear(message: str, path: Path) -> bool:
    """Whether a message is one printable line of reasonable length that names the file."""
    names = (str(path), str(path.parent), path.stem)
    short = len(message.replace(str(path), "")) <= LONGEST
    return message.isprintable() and short and any(name in message for name in names)


class FileCampaign:
    """Damaged files."""

    def case(self, pick: Pick) -> Case:
        """A damaged file of any kind."""
        kind = pick.of(list(KINDS))
        data = damaged_file(kind, pick.integer(0, 2**32 - 1))
        return {"kind": kind, "file": b64encode(zlib.compress(data, 1)).decode()}

    def run(self, case: Case) -> tuple[str, str]:
        """Let the reader read the damaged file; `outcome` judges what it does."""
        kind = case["kind"]
        path = Path(_folder(kind).name) / KINDS[kind].file
        write_scratch(path, zlib.decompressobj().decompress(b64decode(case["file"]), LARGEST))
        result = outcome(kind, path)
        rule = "must be read, or refused in one line"
        return result.verdict, "" if result.good else f"{kind}: {rule}, got: {result.message}"


@cache
def _folder(kind: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder with a valid file of that kind, and what belongs to it."""
    folder = tempfile.TemporaryDirectory(prefix="bitloom-fuzz-")
    KINDS[kind].write(Path(folder.name) / KINDS[kind].file)
    return folder
