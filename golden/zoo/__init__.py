"""Networks that come with bitloom: trained ones, ``<name>.npz`` in this folder (golden/file.py), and ones that are
made when they are asked for.

Of these, cnv-w1a1 and lfc-w1a1 are read from trained files that are not part of this repository, where these are: in
the folder that the environment variable BITLOOM_DATA names, by default ../shared/data beside the checkout. Elsewhere
the same topologies get seeded weights (golden/zoo/bnn_pynq.py); `source` says which it is.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote

from bitloom.golden import file
from bitloom.golden.names import meant, shown
from bitloom.golden.network import Model, Network
from bitloom.golden.transform import Transform

from . import bnn_pynq, int8_ends
from . import cifar_quick as reference

FOLDER = Path(__file__).parent
SEEDED: dict[str, Callable[[], Model]] = {
    "cifar-quick-int8": reference.cifar_quick_int8,
    "bnn-int8-ends": int8_ends.seeded,
    "cnv-w2a2": lambda: bnn_pynq.seeded(bnn_pynq.cnv_w2a2()),
}
"""Networks with random weights, the same on every machine."""
READ: dict[str, tuple[Callable[[], Network], str]] = {
    "cnv-w1a1": (bnn_pynq.cnv, "cnvW1A1_cifar10.npz"),
    "lfc-w1a1": (bnn_pynq.lfc, "lfcW1A1_mnist.npz"),
}
"""Networks whose trained weights lie in a file of `data_folder`, if it is there."""
TRANSFORMS = {
    "digits-cnn": Transform("none"),
    "digits-or": Transform("none"),
    "digits-residual": Transform("none"),
    "digits-words": Transform("none"),
    "cifar-quick-int8": Transform("minus:128"),
    "cnv-w1a1": bnn_pynq.CNV_TRANSFORM,
    "cnv-w2a2": bnn_pynq.CNV_TRANSFORM,
    "lfc-w1a1": bnn_pynq.LFC_TRANSFORM,
}
"""Network -> transform of the pixels that it was made for: grey values of 0 .. 16 for the networks of the digits,
0 .. 255 for the others."""


def data_folder() -> Path:
    """The folder where trained networks and recorded data are looked for; it need not exist."""
    return Path(os.environ.get("BITLOOM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def names() -> list[str]:
    """Names of the networks, sorted."""
    return sorted([*SEEDED, *READ, *(path.stem for path in FOLDER.glob("*.npz"))])


def load(name: str) -> Model:
    """Make or read a network that comes along.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    ValueError
        If there is no such network, or if its trained file is damaged.
    """
    _check(name)
    if name in READ:
        network, file_name = READ[name]
        path = data_folder() / file_name
        return bnn_pynq.trained(network(), path) if path.exists() else bnn_pynq.seeded(network())
    return SEEDED[name]() if name in SEEDED else file.load(FOLDER / f"{name}.npz")


def source(name: str) -> str:
    """Say where the weights come from that `find` gives.

    Parameters
    ----------
    name : str
        As of `find`.

    Returns
    -------
    str
        ``trained, from <file>``; ``seeded weights``, with the name of the trained file if that is absent; or
        ``model file <path>``.
    """
    if Path(name).suffix == ".npz":
        return f"model file {name}"
    _check(name)
    if name in SEEDED:
        return "seeded weights"
    path = data_folder() / READ[name][1] if name in READ else FOLDER / f"{name}.npz"
    return f"trained, from {path.name}" if path.exists() else f"seeded weights: {path.name} is not in {path.parent}"


def find(name: str, others: Iterable[str] = ()) -> Model:
    """A network that comes along, by one of `names`, or the model in a file, by the file's path (.npz).

    Parameters
    ----------
    name : str
    others : iterable of str
        Further names that the caller takes, such as those of designs: a misspelt name may mean one of them.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is neither a network's name nor a model file; the message says which name was probably meant, or how a
        file of another tool becomes a model file.
    """
    if Path(name).suffix == ".npz":
        return file.load(Path(name))
    _check(name, others)
    return load(name)


FOREIGN = (".onnx", ".tflite")
"""Endings of files that ``bitloom import`` makes model files of."""


def _check(name: str, others: Iterable[str] = ()) -> None:
    if name in names():
        return
    if Path(name).suffix.lower() in FOREIGN:
        raise ValueError(
            f"network: must be a model file, got {shown(name)}; import it first: bitloom import {quote(name)} "
            f"--out {quote(f'{Path(name).stem}.npz')}"
        )
    raise ValueError(
        f"network: must be one of {', '.join(names())}, or a model file, <name>.npz (how to make one: "
        f"docs/how-to/network.md), got {shown(name)}{meant(name, [*names(), *others])}"
    )
