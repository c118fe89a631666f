"""A file from which an interrupted training goes on."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array


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
            with np.load(self.path, allow_pickle=False) as data:
                arrays = {key: data[key] for key in data.files}
            run = str(arrays.pop("run"))
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as e:
            raise ValueError(f"{self.path}: must be a checkpoint of training, got: {e}; delete it to start anew") from e
        if run != self.run:
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
