"""Trained networks that come with bitloom: ``<name>.npz`` in this folder, see golden/file.py."""

from pathlib import Path

from golden import file
from golden.network import Model

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of the networks, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def load(name: str) -> Model:
    """The trained network of that name; ValueError if there is none."""
    if name not in names():
        raise ValueError(f"network: name must be one of {', '.join(names())}, got {name!r}")
    return file.load(FOLDER / f"{name}.npz")
