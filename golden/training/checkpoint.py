"""A file from which an interrupted training goes on.

It may come from anybody: what is in it must be just what the run itself would have written, by names, shapes and types,
and within the bounds that the run keeps.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array
from bitloom.golden.reading.archive import listed, read_archive
from bitloom.golden.reading.file import reason

LARGEST = 1e18
"""Magnitude of a saved real number at most: squares and sums of those that a run has stay finite."""


class CheckpointError(ValueError):
    """A file that can't be the checkpoint of a run; the message names it and says what to do."""


class Checkpoint:
    """A file with the state of one run after its last whole epoch.

    The run is known by all that its result depends on.

    Parameters
    ----------
    path : Path
        The file.
    run : sequence
        Network and recipe, as JSON knows them.
    images, labels : (...) integers
        Images that are learned from, and their classes.
    """

    def __init__(self, path: Path, run: Sequence[Any], images: Array, labels: Array) -> None:
        digest = hashlib.sha256(json.dumps([*run, images.shape], sort_keys=True).encode())
        for data in (images, labels):
            digest.update(data.astype("<i8").tobytes())
        self.path = Path(path)
        self.run = digest.hexdigest()

    def read(self) -> dict[str, Array]:
        """Read the saved arrays by name; none if there is no file. CheckpointError if the file is not of this run."""
        if not self.path.exists():
            return {}
        with self.checking():
            archive = read_archive(self.path)
            run = archive.array("run", "U")
            arrays = {name: archive.array(name, "biuf") for name in archive.arrays if name != "run"}
        if run.shape != () or str(run) != self.run:
            raise CheckpointError(
                f"{self.path}: must be a checkpoint of this run (network, data, recipe), "
                f"got one of another; delete it to start anew"
            )
        return arrays

    @contextmanager
    def checking(self) -> Iterator[None]:
        """A block that looks at what was read: its ValueError becomes a CheckpointError that names the file."""
        try:
            yield
        except ValueError as e:
            got = reason(e).removeprefix(f"{self.path}: ")
            raise CheckpointError(
                f"{self.path}: must be a checkpoint of training, got: {got}; delete it to start anew"
            ) from None

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Replace the file in one step: an interrupt leaves the old one or the new one, whole."""
        out = io.BytesIO()
        np.savez(out, run=np.array(self.run), **arrays)
        write_bytes(self.path, out.getvalue())


def check_saved(expected: Mapping[str, Array], saved: Mapping[str, Array]) -> None:
    """Refuse saved arrays that a run would not have written.

    Parameters
    ----------
    expected : mapping of str to array
        Arrays that the run itself would write.
    saved : mapping of str to array
        Arrays that were read.

    Raises
    ------
    ValueError
        If there are other names, shapes or dtypes, or a number is beyond LARGEST.
    """
    if more := [name for name in saved if name not in expected]:
        raise ValueError(f"state: names must be those of the run, got also {listed(more)}")
    for name, value in expected.items():
        given = saved.get(name)
        if given is None or (given.shape, given.dtype) != (value.shape, value.dtype):
            got = "none" if given is None else f"{given.dtype} of shape {given.shape}"
            raise ValueError(f"state: {name} must be {value.dtype} of shape {value.shape}, got {got}")
        if given.dtype.kind == "f":
            check_range(name, given, -LARGEST, LARGEST)


def check_range(name: str, values: Array, low: float, high: float) -> None:
    """Refuse saved numbers outside of ``low`` to ``high``; ValueError with the first of them."""
    wrong = values[(values < low) | (values > high)]
    if wrong.size:
        raise ValueError(f"state: {name} must be {low:.12g}..{high:.12g}, got {wrong.flat[0]:.12g}")
