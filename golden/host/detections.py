"""The last step of a detector: boxes are decoded, and of those that overlap the one with the largest score stays, as
TFLite's operator TFLite_Detection_PostProcess has it.

    boxes, anchors --> corners --.
                                  >-- the largest scores, without overlaps --> boxes, classes, scores, their number
    scores -----------------------'

Boxes and scores are computed with numbers of single precision, as there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain

MOST_DETECTIONS = 1 << 16
"""Detections at most."""


@dataclass(frozen=True, kw_only=True)
class Detections:
    """The last step of a detector, behind three of the host's outputs."""

    boxes: int
    scores: int
    anchors: int
    """boxes, scores, anchors: places of these outputs among the host's. Of n boxes, boxes are (n, 4 or more): y and x
    of the centre, height and width, in parts of the anchors'; scores (n, classes), or (n, 1 + classes) with a
    background in front; anchors (n, 4), a constant."""
    names: tuple[str, ...]
    """Four: of corners (y, x, y, x), classes, scores, and the number of detections."""
    most: int
    """Detections at most, 1..MOST_DETECTIONS: so many places have the results. Places that are left are 0."""
    most_classes: int = 1
    """Classes that a box may have at most; 1..MOST_DETECTIONS. A box takes so many places."""
    by_class: bool = False
    """Whether boxes hide others of their own class alone: then each class of a box takes a place. Of equal scores the
    one that comes first goes before."""
    most_of_class: int = 100
    """With ``by_class``, detections of a class at most, >= 1."""
    classes: int
    """>= 1, without a background."""
    least_score: float
    """Boxes with smaller scores are left out."""
    most_overlap: float
    """Two boxes overlap whose intersection is a larger share of their union; above 0, 1 at most."""
    scales: tuple[float, ...]
    """Four numbers > 0: what y, x, height and width of boxes are divided by."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for name, least, most in (
            ("boxes", 0, 1 << 31),
            ("scores", 0, 1 << 31),
            ("anchors", 0, 1 << 31),
            ("most", 1, MOST_DETECTIONS),
            ("most_classes", 1, MOST_DETECTIONS),
            ("most_of_class", 1, 1 << 31),
            ("classes", 1, 1 << 31),
        ):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"detections: {name} must be an integer of {least}..{most}, got {value!r}")
        if type(self.by_class) is not bool:
            raise ValueError(f"detections: by_class must be True or False, got {self.by_class!r}")
        if self.places > MOST_DETECTIONS:
            raise ValueError(f"detections: there must be at most {MOST_DETECTIONS:,} places, got {self.places:,}")
        if not np.isfinite(self.least_score) or not 0 < self.most_overlap <= 1:
            got = f"{self.least_score:g} and {self.most_overlap:g}"
            raise ValueError(
                f"detections: the least score must be finite, the overlap above 0 and at most 1, got {got}"
            )
        if len(self.scales) != 4 or not all(np.isfinite(scale) and scale > 0 for scale in self.scales):
            raise ValueError(f"detections: scales must be four finite numbers > 0, got {self.scales}")
        if len(self.names) != 4 or len({*self.names}) < 4:
            raise ValueError(f"detections: there must be four names, got {', '.join(self.names)}")

    @property
    def inputs(self) -> tuple[int, int, int]:
        """Places of the outputs that it reads."""
        return self.boxes, self.scores, self.anchors

    @property
    def places(self) -> int:
        """Places of the results."""
        return self.most * self.most_classes

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the results of an image, by name."""
        return dict(zip(self.names, ((self.places, 4), (self.places,), (self.places,), ())))

    def check(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise ValueError unless outputs of these shapes are boxes, scores and anchors."""
        if len({*self.inputs}) < 3 or max(self.inputs) >= len(shapes):
            raise ValueError(f"detections: three of {len(shapes)} outputs must be read, got {self.inputs}")
        boxes, scores, anchors = (shapes[place] for place in self.inputs)
        background = scores[-1] - self.classes if scores else -1
        fits = len(boxes) == len(scores) == 2 and boxes[0] == scores[0] and boxes[1] >= 4
        if not fits or background not in (0, 1) or np.prod(anchors) != 4 * boxes[0]:
            rule = f"(n, 4), (n, {self.classes}) or one class more, and (n, 4)"
            raise ValueError(f"detections: boxes, scores and anchors must be {rule}, got {boxes}, {scores}, {anchors}")

    def run(self, boxes: Array, scores: Array, anchors: Array) -> dict[str, Array]:
        """The results of a batch, by name.

        Parameters
        ----------
        boxes : (N, n, 4 or more)
        scores : (N, n, classes)
        anchors : (N, 4 n)

        Returns
        -------
        dict of str to float64 array
            (N, places, 4), (N, places), (N, places) and (N,).
        """
        count = len(boxes)
        results = [np.zeros((count, *shape)) for shape in self.shapes.values()]
        for image in range(count):
            with np.errstate(over="ignore", invalid="ignore"):  # sizes of any boxes
                corners = self._corners(boxes[image, :, :4], anchors[image].reshape(-1, 4))
                places, of_box, classes, kept = self._kept(corners, scores[image].astype(np.float32))
            results[0][image, places] = corners[of_box]
            results[1][image, places] = classes
            results[2][image, places] = kept
            results[3][image] = len(of_box) // (1 if self.by_class else min(self.most_classes, self.classes))
        return dict(zip(self.names, results))

    def _corners(self, boxes: Array, anchors: Array) -> Array:
        """Corners of boxes: (n, 4) float32."""
        values = boxes.astype(np.float32).astype(np.float64) / np.array(self.scales, np.float32)
        anchors = anchors.astype(np.float32).astype(np.float64)
        centre = (values[:, :2] * anchors[:, 2:] + anchors[:, :2]).astype(np.float32)
        half = (0.5 * np.exp(values[:, 2:]) * anchors[:, 2:]).astype(np.float32)
        return np.concatenate([centre - half, centre + half], axis=1)

    def _kept(self, corners: Array, scores: Array) -> tuple[Array, Array, Array, Array]:
        """Of each detection its place, and the number, the class and the score of its box."""
        scores = scores[:, scores.shape[1] - self.classes :]
        if self.by_class:
            boxes = [self._apart(corners, of_class, self.most_of_class) for of_class in scores.T]
            of_box = np.array([box for each in boxes for box in each], np.int64)
            classes = np.repeat(np.arange(self.classes), [len(each) for each in boxes])
            largest = np.argsort(-scores[of_box, classes], kind="stable")[: self.most]
            of_box, classes = of_box[largest], classes[largest]
            return np.arange(len(of_box)), of_box, classes, scores[of_box, classes]
        each = min(self.most_classes, self.classes)
        of_box = np.array(self._apart(corners, scores.max(axis=1), self.most), np.int64)
        classes = np.argsort(-scores[of_box], axis=1, kind="stable")[:, :each]
        places = np.arange(len(of_box))[:, None] * self.most_classes + np.arange(each)
        of_box = of_box.repeat(each)
        return places.ravel(), of_box, classes.ravel(), scores[of_box, classes.ravel()]

    def _apart(self, corners: Array, scores: Array, most: int) -> list[int]:
        """Numbers of the boxes with the largest scores that don't overlap, at most so many."""
        left = np.flatnonzero(scores >= np.float32(self.least_score))
        left = left[np.argsort(-scores[left], kind="stable")]
        out: list[int] = []
        while len(left) and len(out) < most:
            first, left = left[0], left[1:]
            out.append(int(first))
            left = left[~(_overlaps(corners[first], corners[left]) > np.float32(self.most_overlap))]
        return out


def _overlaps(box: Array, others: Array) -> Array:
    """The share of the intersection in the union of a box and each of others, (n,) float32; 0 where one has no area."""
    areas = [(corners[..., 2] - corners[..., 0]) * (corners[..., 3] - corners[..., 1]) for corners in (box, others)]
    begin = np.maximum(box[:2], others[:, :2])
    end = np.minimum(box[2:], others[:, 2:])
    both = np.maximum(end - begin, np.float32(0)).prod(axis=1, dtype=np.float32)
    empty = (areas[0] <= 0) | (areas[1] <= 0)
    return np.where(empty, np.float32(0), both / np.where(empty, np.float32(1), areas[0] + areas[1] - both))
