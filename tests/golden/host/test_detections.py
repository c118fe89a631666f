"""Boxes that are decoded and thinned out: what TFLite's kernel makes of random ones.

data/detections.npz has 7 cases of 60 boxes, with and without a background, by class and not, of equal scores, and of
boxes without area; each with its options and the four results of ai-edge-litert (``OpResolverType.BUILTIN_REF``).
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.host.detections import Detections
from tests.errors import value_error

RECORDED = Path(__file__).parent / "data" / "detections.npz"
NAMES = ("corners", "classes", "found", "count")


def detections_of(options):
    return Detections(
        boxes=0,
        scores=1,
        anchors=2,
        names=NAMES,
        most=options["max_detections"],
        most_classes=options["max_classes_per_detection"],
        by_class=options.get("use_regular_nms", False),
        most_of_class=options.get("detections_per_class", 100),
        classes=options["num_classes"],
        least_score=options["nms_score_threshold"],
        most_overlap=options["nms_iou_threshold"],
        scales=tuple(options[f"{axis}_scale"] for axis in "yxhw"),
    )


@pytest.mark.parametrize("case", range(7))
def test_results_are_those_of_the_kernel(case):
    with np.load(RECORDED) as recorded:
        given = {name.split("_")[1]: recorded[name] for name in recorded.files if name.startswith(f"{case}_")}
    options = json.loads(str(given["options"]))
    detections = detections_of(options)
    detections.check([given[name].shape for name in ("boxes", "scores", "anchors")])
    anchors = given["anchors"].reshape(1, -1)
    got = detections.run(given["boxes"][None], given["scores"][None], anchors)
    assert {name: values.shape[1:] for name, values in got.items()} == detections.shapes
    assert got["count"] == given["count"]
    # Of a box that has fewer classes than there may be, as of all behind the last one, the kernel leaves places as they
    # were.
    each = 1 if detections.by_class else detections.most_classes
    places = np.arange(int(given["count"][0]) * each)
    places = places[places % each < detections.classes]
    for name in NAMES[:3]:
        assert np.array_equal(got[name][0, places].astype(np.float32), given[name][0, places])
        left = np.setdiff1d(np.arange(detections.places), places)
        assert not got[name][0, left].any()


SHARES = {"least_score": 0.5, "most_overlap": 0.5, "scales": (10.0, 10.0, 5.0, 5.0)}
PLAIN = Detections(boxes=0, scores=1, anchors=2, names=NAMES, most=3, classes=2, **SHARES)


def test_images_are_apart():
    rng = np.random.default_rng(1)
    boxes = rng.normal(size=(3, 9, 4))
    scores, anchors = rng.random((3, 9, 2)), rng.random((3, 36))
    together = PLAIN.run(boxes, scores, anchors)
    for image in range(3):
        alone = PLAIN.run(*(values[image : image + 1] for values in (boxes, scores, anchors)))
        assert all(np.array_equal(together[name][image], alone[name][0]) for name in NAMES)


OVERLAP = "the least score must be finite, the overlap above 0 and at most 1, got 0.5 and 0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"most": 0}, "most must be an integer of 1..65536, got 0"),
        ({"most_of_class": 0}, "most_of_class must be an integer of 1..2147483648, got 0"),
        ({"classes": 1.0}, "classes must be an integer of 1..2147483648, got 1.0"),
        ({"boxes": -1}, "boxes must be an integer of 0..2147483648, got -1"),
        ({"by_class": 1}, "by_class must be True or False, got 1"),
        ({"most": 65536, "most_classes": 2}, "there must be at most 65,536 places, got 131,072"),
        ({"most_overlap": 0.0}, OVERLAP),
        ({"scales": (1.0, 2.0, 0.0, 1.0)}, "scales must be four finite numbers > 0, got (1.0, 2.0, 0.0, 1.0)"),
        ({"names": ("a", "b", "b", "c")}, "there must be four names, got a, b, b, c"),
    ],
)
def test_what_is_refused(change, message):
    with value_error(f"detections: {message}"):
        replace(PLAIN, **change)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(9, 4), (9, 2)], "detections: three of 2 outputs must be read, got (0, 1, 2)"),
        ([(9, 3), (9, 2), (9, 4)], "(9, 3), (9, 2), (9, 4)"),
        ([(9, 4), (8, 2), (9, 4)], "(9, 4), (8, 2), (9, 4)"),
        ([(9, 4), (9, 4), (9, 4)], "(9, 4), (9, 4), (9, 4)"),
        ([(9, 4), (9, 3), (35,)], "(9, 4), (9, 3), (35,)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    rule = "detections: boxes, scores and anchors must be (n, 4), (n, 2) or one class more, and (n, 4), got "
    with value_error(message if message.startswith("detections") else rule + message):
        PLAIN.check(shapes)
