"""The host's part around an imported network: images become integers in front of it, integers become scores behind.

    image --lines, clips--> real numbers --levels--> [network] --lines, clips--> scores --closing--> the file's output
                                                           `--lines, clips--> values --closing--> another output

Outputs may be boxes that a last step decodes and thins out (detections.py).

An image is what the file's input takes. Where that is integers, as in int8 TFLite files, `InputIntegers` says which
real numbers the integers stand for.

Both ends are links (links.py), a channel with its own floating-point numbers: the host computes in float64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array, refuse_masked

from .detections import Detections
from .links import HostLinks, back_through, keeps_order, through

MOST = 1 << 31
"""The largest magnitude of an input: floating-point numbers are cut to it before they become integers."""


@dataclass(frozen=True, kw_only=True)
class InputIntegers:
    """The integers that a file's input takes, and the real numbers that the integers stand for.

    An integer stands for (integer - zero) * scale, as in an int8 TFLite file.
    """

    low: int
    high: int
    """low, high: the smallest and the largest integer, within -MOST..MOST."""
    scale: float = 1.0
    """> 0. Where a file doesn't say what its integers stand for, the scale is 1 and zero is 0."""
    zero: int = 0
    """The integer that stands for 0, low..high."""

    def of(self, numbers: Array) -> Array:
        """Make int64 integers of real numbers: the nearest one, halves away from zero, and the ends for all beyond.

        Rounding and saturation are those of TFLite's QUANTIZE.

        Raises
        ------
        ValueError
            If a number is not finite.
        """
        numbers = np.asarray(numbers, np.float64)
        _check_finite(numbers)
        steps = numbers / self.scale
        rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
        integers: Array = np.clip(rounded + self.zero, self.low, self.high).astype(np.int64)
        return integers


@dataclass(frozen=True, kw_only=True, eq=False)
class RealRange:
    """The real numbers that an input tells apart."""

    low: Array
    high: Array
    """low, high: (1,) or (channels,) float64: what the smallest and the largest value of the input stand for."""
    slack: Array
    """(1,) or (channels,) float64: half the distance of two neighbouring values, where the host knows it: a number that
    lies further outside of low..high is clipped."""

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest number of all channels, and the largest one."""
        return float(self.low.min()), float(self.high.max())

    def __str__(self) -> str:
        low, high = self.ends
        return f"{low:.6g}..{high:.6g}"

    def clipped(self, numbers: Array) -> Array:
        """Tell which of (..., channels) numbers are clipped: truth values of the same shape."""
        outside: Array = (numbers < self.low - self.slack) | (numbers > self.high + self.slack)
        return outside


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputPart:
    """A map of the network that becomes an output of the file, or a part of one."""

    first: int
    """Place of its first value in the network's output: 0, or in one of several maps (golden/layers/outputs.py) that of
    the map."""
    size: int
    """Values of the map."""
    chain: HostLinks
    """Links that make the file's numbers of the values, a channel."""

    def values(self, output: Array) -> Array:
        """(N, rows, columns, channels) output of the network -> (N, size) float64."""
        flat = output.reshape(len(output), -1)[:, self.first : self.first + self.size].astype(np.float64)
        channels = len(self.chain[0][1]) if self.chain else 1
        numbers: Array = through(self.chain, flat.reshape(len(flat), -1, channels)).reshape(len(flat), self.size)
        return numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class HostOutput:
    """An output of the file."""

    name: str
    """As the file calls it."""
    shape: tuple[int, ...]
    """Of the file's output for one image, such as (boxes, 4)."""
    parts: tuple[OutputPart, ...]
    """Maps that its values come from, one behind the other; none of an output that is a constant."""
    order: Array
    """(values,) int64: the place of each value among those of the parts."""
    closing: tuple[str, ...]
    """Functions of the values that the host computes at last, words of CLOSINGS; each leaves the order of classes as it
    is."""
    classes: int
    apart: int
    """classes, apart: ``closing`` is computed over so many values at a time, each so many places behind the one before:
    of shape (3, 8, 6) over 3 values that are 48 apart, of (boxes, 3) over 3 that are 1 apart."""
    constant: Array | None = None
    """(values,) float64 of an output that doesn't depend on the image; else None."""

    @property
    def is_vector(self) -> bool:
        """Whether its values are one vector, as scores of classes are, not one at each of several positions."""
        return self.order.size == max(self.shape, default=1)

    @property
    def keeps_order(self) -> bool:
        """Whether its values rise with the network's integers, and stand in their order."""
        plain = len(self.parts) == 1 and keeps_order(self.parts[0].chain)
        return plain and np.array_equal(self.order, np.arange(self.order.size))

    def scores(self, output: Array) -> Array:
        """Values in front of ``closing``: (N, rows, columns, channels) integers -> (N, values) float64.

        Raises
        ------
        ValueError
            If a value is not finite, so that none is the largest.
        """
        if self.constant is not None:
            return np.tile(self.constant, (len(output), 1))
        values = np.concatenate([part.values(output) for part in self.parts], axis=1)
        if not np.isfinite(values).all():
            raise ValueError(f"the host's scores must be finite, got {values[~np.isfinite(values)][0]}")
        ordered: Array = values[:, self.order]
        return ordered

    def closed(self, output: Array) -> Array:
        """The file's own output, (N, *shape) float64; errors are those of `scores`."""
        groups = self.order.size // (self.classes * self.apart)
        values = self.scores(output).reshape(len(output), groups, self.classes, self.apart)
        for word in self.closing:
            values = CLOSINGS[word](values)
        return values.reshape(len(output), *self.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Host:
    """The host's part of an imported network: it makes integers of images, and scores of the network's integers."""

    digest: str
    """Of the model that it belongs to."""
    shape: tuple[int, ...]
    """Of an image as the file has it, such as (channels, rows, columns)."""
    order: Array
    """(values,) int64: the place of each of its values in the network's input map."""
    front: HostLinks
    """Links of the image's values, a channel, before quantisation."""
    boundaries: Array | None
    """(1 or channels, levels) float64, or None: a value's level is the number of boundaries that it has reached; None
    where images are integers already."""
    reached: Array | None
    """(levels,) bool, or None: whether equality reaches a boundary."""
    first: int
    stride: int
    """first, stride: a quantised value is first + stride * level. Where images are integers, first is what is added to
    them."""
    outputs: tuple[HostOutput, ...]
    """The file's outputs, in the file's order, each with what makes it of the network's output: the scores, or several
    outputs."""
    detections: Detections | None = None
    """The last step of a detector, behind three of these outputs, which are then none of the file's own; None where
    there is none."""
    integers: InputIntegers | None = None
    """Of a file whose input takes integers: which ones, and what they stand for. None where it takes real numbers."""

    def check_images(self, images: Array) -> None:
        """Raise ValueError unless images are numbers of the file's kind in the file's shape, (N, *shape)."""
        if not isinstance(images, np.ndarray) or images.ndim == 0 or images.shape[1:] != self.shape:
            got = getattr(images, "shape", type(images).__name__)
            raise ValueError(f"images must have shape (N, {', '.join(map(str, self.shape))}), got {got}")
        refuse_masked("images", images)
        if images.dtype.kind not in "biuf":
            raise ValueError(f"images must be numbers, got dtype {images.dtype}")
        if self.integers is not None and images.dtype.kind == "f":
            low = self.integers.low
            high = self.integers.high
            raise ValueError(f"images must be integers of {low}..{high}, as the file's input, got dtype {images.dtype}")

    def as_file(self, numbers: Array) -> Array:
        """Make images as the file takes them, of the real numbers that the network was trained on.

        Parameters
        ----------
        numbers : (N, *shape) numbers

        Returns
        -------
        (N, *shape)
            Integers where the file's input takes integers (`InputIntegers.of`), else the numbers themselves.
        """
        refuse_masked("images", numbers)
        return numbers if self.integers is None else self.integers.of(numbers)

    def real_range(self) -> RealRange | None:
        """Find the real numbers that the input tells apart; see `RealRange`.

        Returns
        -------
        RealRange or None
            None where the host doesn't say: the range has no end, or one boundary alone, as that of a binary input.
        """
        steps = 0
        ends = [np.array([-np.inf]), np.array([np.inf])]
        if self.boundaries is not None:
            steps = self.boundaries.shape[1]
            if steps < 2:
                return None
            first = self.boundaries[:, 0]
            last = self.boundaries[:, -1]
            half = (last - first) / (steps - 1) / 2  # a value lies between two boundaries
            ends = [first - half, last + half]
        ends = [back_through(self.front, end) for end in ends]
        if self.integers is not None:
            i = self.integers
            steps = steps or i.high - i.low
            ends = [(np.clip(end, i.low, i.high) - i.zero) * i.scale for end in ends]
        low = np.minimum(*ends)
        high = np.maximum(*ends)
        if not np.isfinite([low, high]).all() or not (low < high).all():
            return None
        return RealRange(low=low, high=high, slack=(high - low) / (2 * steps) if steps else 0 * low)

    def to_input(self, images: Array, size: tuple[int, int, int]) -> Array:
        """Images as the file has them -> what the network reads.

        Parameters
        ----------
        images : (N, *shape) numbers
        size : (int, int, int)
            Rows, columns and channels of the network's input.

        Returns
        -------
        (N, rows, columns, channels) int64

        Raises
        ------
        ValueError
            If the images have another shape, or numbers that are none.
        """
        self.check_images(images)
        placed = np.empty((len(images), self.order.size), np.float64)
        placed[:, self.order] = images.reshape(len(images), self.order.size)
        x = through(self.front, placed.reshape(len(images), *size))
        _check_finite(x)
        if self.boundaries is None or self.reached is None:
            values: Array = np.rint(np.clip(x, -MOST, MOST)).astype(np.int64) + self.first
            return values
        return self.first + self.stride * level_of(x, self.boundaries, self.reached)

    @property
    def has_scores(self) -> bool:
        """Whether the file has one output, which are the scores of classes."""
        return len(self.outputs) == 1 and self.outputs[0].is_vector

    @property
    def only(self) -> HostOutput:
        """The file's one output; ValueError if there are several."""
        if len(self.outputs) != 1:
            raise ValueError(one_output_rule([output.name for output in self.outputs]))
        return self.outputs[0]

    def scores(self, output: Array) -> Array:
        """Scores of the network's one output: see `HostOutput.scores`; ValueError, too, if there are several."""
        return self.only.scores(output)

    def classes(self, output: Array) -> Array:
        """The class of each frame: the number, (N,), of its largest score, of equal ones the first.

        Errors are those of `scores`; ValueError, too, if the output is no vector of scores.
        """
        self.require_classes()
        return np.asarray(self.scores(output).argmax(axis=1))

    def require_classes(self) -> None:
        """ValueError unless the file has one output, which are the scores of classes."""
        shape = self.only.shape
        if not self.has_scores:
            raise ValueError(f"the output must be 1 x 1 x classes to tell a class, got shape {shape}")

    def closed(self, output: Array) -> Array | dict[str, Array]:
        """The file's own output for the network's output.

        Parameters
        ----------
        output : (N, rows, columns, channels) integers

        Returns
        -------
        (N, *shape) float64
            The output; behind softmax, its logarithm or a sigmoid if the file ends in these. If the file ends in the
            class, or in the largest scores, all scores are given instead.
        dict of str to (N, *shape) float64
            Of a file with several outputs: each by its name.

        Raises
        ------
        ValueError
            As `scores`.
        """
        if len(self.outputs) == 1:
            return self.outputs[0].closed(output)
        closed = [each.closed(output) for each in self.outputs]
        detected: dict[str, Array] = {}
        if self.detections is not None:
            boxes, scores, anchors = (closed[place] for place in self.detections.inputs)
            detected = self.detections.run(boxes, scores, anchors.reshape(len(output), -1))
        left = self._beside_detections
        return {**detected, **{each.name: values for each, values in zip(self.outputs, closed) if each in left}}

    @property
    def _beside_detections(self) -> list[HostOutput]:
        """The outputs that no detections are made of: the file has them itself."""
        read = () if self.detections is None else self.detections.inputs
        return [output for place, output in enumerate(self.outputs) if place not in read]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the file's outputs for an image, by name."""
        detected = {} if self.detections is None else self.detections.shapes
        return {**detected, **{output.name: output.shape for output in self._beside_detections}}

    @property
    def keeps_order(self) -> bool:
        """Whether the largest integer is always the largest score, so that nobody needs the scores for the class."""
        return self.only.keeps_order


def one_output_rule(names: Sequence[str]) -> str:
    """Why there are no classes of a network with outputs of these names."""
    return f"classes are of networks with one output, got {len(names)}: {', '.join(names)}"


def _check_finite(numbers: Array) -> None:
    if not np.isfinite(numbers).all():
        raise ValueError(f"images must give finite numbers, got {numbers[~np.isfinite(numbers)][0]}")


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=2, keepdims=True))
    shares: Array = powers / powers.sum(axis=2, keepdims=True)
    return shares


def _log_softmax(x: Array) -> Array:
    below = x - x.max(axis=2, keepdims=True)
    logarithms: Array = below - np.log(np.exp(below).sum(axis=2, keepdims=True))
    return logarithms


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))  # never too large
    values: Array = np.where(x >= 0, 1, small) / (1 + small)
    return values


def _same(x: Array) -> Array:
    return x


CLOSINGS: dict[str, Callable[[Array], Array]] = {
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "Sigmoid": _sigmoid,
    "ArgMax": _same,
    "TopK": _same,
}
"""Operators at a file's end, as functions of (N, groups, classes, apart) float64: see `HostOutput.classes`. They leave
the order of the classes as it is."""


def level_of(x: Array, boundaries: Array, reached: Array) -> Array:
    """How many boundaries each value has reached.

    Parameters
    ----------
    x : (..., channels) float64 or object
        Numbers of Python are compared exactly.
    boundaries : (1 or channels, levels)
        Rising.
    reached : (levels,) bool
        Whether a value that equals a boundary has reached it.

    Returns
    -------
    (..., channels) int64
    """
    equal = np.append(0, np.cumsum(reached))  # of the first boundaries, those that equality reaches
    if len(boundaries) == 1:
        return _level(x, boundaries[0], equal)
    out = np.empty(x.shape, np.int64)
    for channel, limits in enumerate(boundaries):
        out[..., channel] = _level(x[..., channel], limits, equal)
    return out


def _level(x: Array, limits: Array, equal: Array) -> Array:
    below, upto = (np.searchsorted(limits, x, side=side) for side in ("left", "right"))
    levels: Array = below + equal[upto] - equal[below]
    return levels
