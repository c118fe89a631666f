"""Networks that come with bitloom: trained ones, ``<name>.npz`` in this folder (golden/file.py), and ones that are
made when they are asked for.
"""

from collections.abc import Callable
from pathlib import Path

from golden import file, reference
from golden.network import Model

FOLDER = Path(__file__).parent
MADE: dict[str, Callable[[], Model]] = {"cifar-quick-int8": reference.cifar_quick_int8}
"""Networks with random weights, the same on every machine."""


def names() -> list[str]:
    """Names of the networks, sorted."""
    return sorted([*MADE, *(path.stem for path in FOLDER.glob("*.npz"))])


def load(name: str) -> Model:
    """The network of that name; ValueError if there is none."""
    if name not in names():
        raise ValueError(f"network: name must be one of {', '.join(names())}, got {name!r}")
    return MADE[name]() if name in MADE else file.load(FOLDER / f"{name}.npz")


def find(name: str) -> Model:
    """A network of ours by name, or the model file (.npz) at that path."""
    return file.load(Path(name)) if Path(name).suffix == ".npz" else load(name)
