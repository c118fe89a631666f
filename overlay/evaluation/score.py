"""How often a network is right: its classes beside the labels, as a confusion matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from bitloom.golden import classes
from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.host.host import Host, one_output_rule
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model, Network
from bitloom.golden.reading.file import naming
from bitloom.golden.transform import Transform

from .host_transform import HostTransform
from .input_use import InputUse, InputWatch
from .labelled import LabelledImages

LARGEST = "largest"
HIGHEST_SET = "highest-set"
SCORES = "scores"
RULES = {
    LARGEST: "the largest output, of equal ones the first",
    HIGHEST_SET: "the highest output that is +1, else 0",
    SCORES: "the largest score that the host makes, of equal ones the first",
}
"""How the class follows from the outputs, in words."""
Z95 = 1.959963984540054
"""Half of the width of a normal distribution's middle 95 %, in standard deviations."""
MOST_VALUES = 1 << 22
"""Values of images, or of outputs, that are computed at a time at most; else it is one image."""
MOST_IMAGES = 1024


@dataclass(frozen=True)
class Score:
    """How often a network is right."""

    classes: tuple[str, ...]
    """Name of each class; its number where it has none."""
    confusion: Array
    """(classes, classes) int64: images of the class of the row that the network takes for that of the column."""
    use: InputUse | None = None
    """Range of the network's input that the images use; None where nobody looked."""

    @property
    def images(self) -> int:
        """Number of images."""
        return int(self.confusion.sum())

    @property
    def right(self) -> int:
        """Number of images whose class the network finds."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of images whose class the network finds, 0..1."""
        return self.right / self.images

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the accuracy: with other images from the same source, 95 % of such intervals hold it."""
        return wilson(self.right, self.images)

    @property
    def recall(self) -> list[float | None]:
        """For each class the share of its images that the network finds; None where it has no image."""
        counts = self.confusion.sum(axis=1).tolist()
        return [hit / count if count else None for hit, count in zip(np.diag(self.confusion).tolist(), counts)]

    def confused(self, most: int) -> list[tuple[int, int, int]]:
        """The commonest mistakes: class, what it is taken for, and how often; of equal ones the first.

        Parameters
        ----------
        most
            How many at most; what never happens is not among them.
        """
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-wrong, axis=None, kind="stable")[:most].tolist()
        pairs = [divmod(place, len(self.classes)) for place in order]
        return [(row, column, int(wrong[row, column])) for row, column in pairs if wrong[row, column]]


def wilson(right: int, images: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (E. B. Wilson, 1927, J. Am. Stat. Assoc. 22, 209).

    Parameters
    ----------
    right, images
        The share is ``right / images``; images >= 1.

    Returns
    -------
    tuple of float
        Low and high end, 0..1.
    """
    share = right / images
    weight = Z95**2 / images
    middle = share + weight / 2
    half = Z95 * sqrt(share * (1 - share) / images + weight / (4 * images))
    return max(0.0, (middle - half) / (1 + weight)), min(1.0, (middle + half) / (1 + weight))


def class_rule(network: Network, rule: str | None = None, host: Host | None = None) -> str:
    """The rule by which a class follows from the network's outputs, one of RULES.

    Parameters
    ----------
    network
        The network. Single bits are told apart by ``highest-set``, as the boards of BNN-PYNQ do; all others by
        ``largest``, or by ``scores`` where an imported network's scores have another order than its outputs.
    rule
        Rule that is chosen instead; None: none.
    host
        The host's part of an imported network; None for others.

    Raises
    ------
    ValueError
        If the network has several outputs, or one that is no vector of classes, or ``scores`` is chosen where there is
        no host file.
    """
    names = [*host.shapes] if host is not None else network.outputs
    if len(names) > 1:
        raise ValueError(f"{network.name}: {one_output_rule(names)}")
    output = network.output
    shape = host.only.shape if host is not None and len(network.outputs) > 1 else output.shape
    if not output.size == output.channels == max(shape):
        raise ValueError(f"{network.name}: the output must be 1 x 1 x classes to tell a class, got shape {shape}")
    if rule == SCORES and host is None:
        raise ValueError(f"{network.name}: class rule {SCORES} needs the network's host file, got none")
    if rule is not None:
        return rule
    if host is not None:
        return LARGEST if host.keeps_order else SCORES
    return HIGHEST_SET if output.encoding == BIPOLAR else LARGEST


def as_counted(network: Network, rule: str, host: Host | None) -> Network:
    """The network with its class names in the order in which ``rule`` numbers them: for ``scores`` the file's order."""
    if rule != SCORES or host is None or not network.classes:
        return network
    return replace(network, classes=tuple(network.classes[place] for place in host.only.order))


def classifier(rule: str, host: Host | None = None) -> Callable[[Array], Array]:
    """One of RULES as a function: (N, 1, 1, classes) outputs -> (N,) numbers of classes."""
    if rule == HIGHEST_SET:
        return lambda outputs: classes.highest_set(outputs[:, 0, 0])
    if rule == SCORES and host is not None:
        return lambda outputs: host.scores(outputs).argmax(axis=1)
    return lambda outputs: classes.largest(outputs[:, 0, 0])


def inputs(data: LabelledImages, network: Network, transform: Transform | HostTransform, begin: int, end: int) -> Array:
    """Images ``begin`` to ``end`` as values of the network's input, (end - begin, H, W, C).

    Raises
    ------
    OSError
        If a picture can't be read.
    ValueError
        If a picture is damaged, or the transform gives values that the input can't have.
    """
    return values_of(data.pixels(begin, end), data.name, network, transform)


def values_of(pixels: Array, name: str, network: Network, transform: Transform | HostTransform) -> Array:
    """Pixels of the data ``name`` as values of the network's input, (N, H, W, C); ValueError as `inputs`."""
    with naming(name):
        values = transform(pixels)
        network.input.encoding.check(f"images with transform {transform}", values)
    return values


def evaluate(
    model: Model,
    data: LabelledImages,
    *,
    transform: Transform | HostTransform,
    classify: Callable[[Array], Array],
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """Let golden classify labelled images.

    Parameters
    ----------
    model
        The network.
    data
        Images in the shape of its input.
    transform
        How pixels become values of the input.
    classify
        How outputs tell the class, see `classifier`.
    limit
        How many images, the first ones; None: all.
    progress
        Called with (images done, images) now and then.

    Raises
    ------
    OSError, ValueError
        As `inputs`; also if ``limit`` is more than there are.
    """
    network = model.network
    labels = data.labels
    if limit is not None and limit > len(labels):
        raise ValueError(f"{data.name}: --limit must be <= {len(labels)}, the images that there are, got {limit}")
    count = limit or len(labels)
    outputs = network.output.channels
    size = max(1, min(MOST_IMAGES, MOST_VALUES // max(network.input.size, network.output.size)))
    confusion = np.zeros((outputs, outputs), np.int64)
    hosted = isinstance(transform, HostTransform)
    watch = InputWatch(network.input.encoding, transform.host.real_range() if hosted else None)
    for begin in range(0, count, size):
        end = min(begin + size, count)
        pixels = data.pixels(begin, end)
        values = values_of(pixels, data.name, network, transform)
        watch.see(values, transform.numbers(pixels) if hosted else None)
        classes = classify(packed.forward(model, values))
        np.add.at(confusion, (labels[begin:end], classes), 1)
        if progress is not None:
            progress(end, count)
    names = network.classes or data.classes or tuple(str(number) for number in range(outputs))
    return Score(names, confusion, watch.use())
