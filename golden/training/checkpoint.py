"""A file from which an interrupted training goes on."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array
from bitloom.golden.reading.archive import read_archive


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
        What is learned from.
    """

    def __init__(self, path: Path, run: Sequence[Any], images: Array, labels: Array) -> None:
        digest = hashlib.sha256(json.dumps([*run, images.shape], sort_keys=True).encode())
        for data in (images, labels):
            digest.update(data.astype("<i8").tobytes())
        self.path, self.run = Path(path), digest.hexdigest()

    def read(self) -> dict[str, Array]:
        """Read the saved arrays by name; none if there is no file. ValueError if the file is not of this run."""
        if not self.path.exists():
            return {}
        try:
            archive = read_archive(self.path)
            run = archive.array("run", "U")
            arrays = {name: archive.array(name, "biuf") for name in archive.arrays if name != "run"}
        except ValueError as e:
            got = str(e).removeprefix(f"{self.path}: ")
            raise ValueError(
                f"{self.path}: must be a checkpoint of training, got: {got}; delete it to start anew"
            ) from None
        if run.shape != () or str(run) != self.run:
            raise ValueError(
                f"{self.path}: must be a checkpoint of this run (network, data, recipe), "
                f"got one of another; delete it to start anew"
            )
        return arrays

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Replace the file in one step: an interrupt leaves the old one or the new one, whole."""
        out = io.BytesIO()
        np.savez(out, run=np.array(self.run), **arrays)
        write_bytes(self.path, out.getvalue())
