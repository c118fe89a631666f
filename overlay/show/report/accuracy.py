"""How often the network of a report is right: as `bitloom evaluate` found, or on the digits that ours are for."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bitloom.golden import zoo
from bitloom.golden.file import model_digest
from bitloom.golden.network import Model
from bitloom.golden.reading.json_text import read_json
from bitloom.golden.transform import NONE, Transform
from bitloom.hls_gen.design.reader import Reader
from bitloom.overlay.evaluation.data import DEFAULTS, labelled_images
from bitloom.overlay.evaluation.score import class_rule, classifier, evaluate


@dataclass(frozen=True)
class Accuracy:
    """How often a network is right."""

    data: str
    """Description of the images, in words."""
    images: int
    right: int
    """images, right: how many there are, and of how many golden finds the class."""

    @property
    def share(self) -> float:
        """``right`` / ``images``."""
        return self.right / self.images


def accuracy_of(model: Model, evaluated: Path | None = None) -> Accuracy | None:
    """The accuracy of a network, where it is known.

    Parameters
    ----------
    model
        The network.
    evaluated
        File with what ``bitloom evaluate --json`` printed about the network. None: a network of ours for digits is
        tried on the 360 test images, which takes a moment; the accuracy of other networks is not known.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it isn't such a file, or about another network.
    """
    if evaluated is not None:
        return _read(evaluated, model.network.name)
    name = model.network.name
    ours = name in zoo.names() and DEFAULTS.get(name) == "digits" and find_spec("sklearn") is not None
    if not ours or model_digest(zoo.load(name)) != model_digest(model):
        return None
    images = labelled_images(None, model.network)
    rule = class_rule(model.network)
    score = evaluate(model, images, transform=zoo.TRANSFORMS.get(name, Transform(NONE)), classify=classifier(rule))
    return Accuracy("test digits", score.images, score.right)


def _read(path: Path, network: str) -> Accuracy:
    """The accuracy in a file."""
    reader = Reader(read_json(path, "what bitloom evaluate --json prints"), str(path))
    name = reader.text("network")
    reader.require(name == network, f"network must be {network}", name)
    images = reader.number("images", 1)
    return Accuracy(Path(reader.text("data")).name, images, reader.number("right", 0, images))
