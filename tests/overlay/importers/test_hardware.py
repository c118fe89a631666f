"""Imported networks on simulated hardware, whose outputs are golden's. That golden's are those of the file, the tests
beside this one say."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from bitloom.overlay.importers.imported import Imported, import_file, parse_input
from bitloom.overlay.importers.verify import real_inputs, sample_inputs
from tests.board_data import file as data

from . import (
    against,
    test_boundaries,
    test_buildable,
    test_curves,
    test_growth,
    test_joined,
    test_operators,
    test_pointwise,
    test_products,
    test_ramps,
    test_scales_of_channels,
    test_selections,
    test_tflite,
    test_tflite_forms,
)
from .hardware import on_hardware
from .tflite_files import DATA, Chain

Made = Callable[[], Imported]
BITS = {"kfp": 64, "kgp": 32, "ol": 4}
"""A folding with which frames of dense networks of bits take few cycles."""
LOOKUPS = {"engine": "integer", "feature_bits": 9, "weight_bits": 8, "kfp": 4, "kgp": 4, "ol": 2}


def tflite(chain: Callable[[np.random.Generator], Chain]) -> Made:
    return lambda: test_tflite.imported(chain(np.random.default_rng(6)))


def onnx(chain: Callable[[np.random.Generator], object], **options: str) -> Made:
    return lambda: against.imported(chain(np.random.default_rng(6)), **options)


def looked_up(place: str) -> Made:
    return tflite(lambda rng: test_curves.PLACES[place](Chain((4, 5, 3), 0.02, 7), rng).flat().dense(rng, 7, (0.05, 3)))


CASES: dict[str, tuple[Made, Mapping[str, object]]] = {
    **{f"a U-Net by {name}": (tflite(lambda rng, name=name: test_growth.unet(rng, name)), {})
       for name in test_growth.GROWING},
    "a detector of three sizes": (tflite(test_growth.detector), {}),
    "an autoencoder of transposed convolutions": (tflite(test_growth.autoencoder), {}),
    "depth to space": (tflite(test_growth.subpixels), {}),
    "integers that are interpolated": (
        onnx(lambda rng: test_growth.integers_upsampled(np.int8, *test_growth.LINEAR["half_pixel"])), {}
    ),
    **{f"padding that reflects, of a {reader}": (
        onnx(lambda rng, reader=reader: test_growth.with_padding(rng, reader, "reflect")), {}
    ) for reader in ("Conv", "MaxPool")},
    "padding that reflects, of TFLite": (tflite(lambda rng: test_tflite_forms.mirrored(rng, ((1, 1), (2, 0)))), {}),
    "a detector with boxes": (lambda: import_file(DATA / "ssd.tflite"), {}),
    "constants, pads and means": (tflite(test_tflite_forms.constants), {}),
    "an input that several operators read": (tflite(test_tflite_forms.readers), {}),
    "sums that are rounded once and twice": (tflite(test_tflite.rounded), {}),
    "thresholds of channels that bend": (
        onnx(lambda rng: test_boundaries.network(test_boundaries.CHANNELS["slopes behind factors"])), {}
    ),
    "ramps of channels that bend": (
        onnx(lambda rng: test_boundaries.network(test_boundaries.CHANNELS["both"]), engine="integer"), {}
    ),
    **{f"ramps behind {place}": (tflite(lambda rng, place=place: test_ramps.tflite(place)), {})
       for place in ("a convolution", "a sum", "a dense layer")},
    "a bottleneck with ramps": (tflite(test_ramps.bottleneck), {"kfp": 8, "kgp": 4}),
    **{f"lookups of {place}": (looked_up(place), LOOKUPS)
       for place in ("the input", "a sum", "a depthwise convolution")},
    "the logarithm of ONNX": (onnx(lambda rng: test_curves.between(test_pointwise.FORMULAS["the logarithm"])), LOOKUPS),
    "Mish of ONNX": (onnx(lambda rng: test_curves.between(lambda chain: chain.node("Mish"), version=18)), LOOKUPS),
    "SELU of several operators": (
        tflite(lambda rng: test_pointwise.ended(test_pointwise.selu(test_pointwise.begun(rng)), rng)), LOOKUPS
    ),
    "pixels that become fewer": (tflite(test_growth.SHORTER["pixels of the input"]), {}),
    "a mean behind a padded mean": (tflite(lambda rng: test_joined.mean_of_means(rng, True)), {}),
    "the larger one of two maps": (tflite(lambda rng: test_pointwise.two_of_one_scale(rng, "MAXIMUM")), LOOKUPS),
    "a MobileNet with scales of channels": (
        onnx(test_scales_of_channels.mobilenet), {"kfp": 4, "kgp": 2, "ol": 2, "pfp": 2, "depthwise": True}
    ),
    "a map on its side": (tflite(lambda rng: test_tflite_forms.aside(rng, "a padded convolution")), {}),
    "a dense layer whose places leave": (tflite(test_tflite_forms.places_leave), {}),
    "weights of nine bits": (onnx(lambda rng: test_buildable.WIDE["strides and padding"]()), {}),
    "a transposed convolution with weights of nine bits": (
        onnx(lambda rng: test_growth.transposed_by_unsigned("taps on each other")), {}
    ),
    **{f"{op} of QONNX": (onnx(lambda rng, op=op: test_operators.domained(rng, op)), {})
       for op in ("MultiThreshold", "Trunc")},
    "Upsample of older files": (onnx(test_growth.upsampled), {}),
    "a difference of maps": (lambda: import_file(DATA / "subtraction.tflite"), {}),
    "a map times a sigmoid": (tflite(lambda rng: test_products.mobile(rng, test_products.VECTORS["a sigmoid"])), {}),
    "a map times a vector": (tflite(lambda rng: test_products.mobile(rng, test_products.VECTORS["none"])), {}),
    "squeeze and excite": (onnx(test_products.excited_onnx), {}),
    "squeeze and excite without rows": (onnx(lambda rng: test_products.excited_onnx(rng, (11,))), {}),
    **{f"channels that are cut, {kind}": (tflite(lambda rng, kind=kind: test_selections.parts(rng, kind)), {})
       for kind in ("SPLIT", "SPLIT_V")},
    **{f"cuts, {name}": (onnx(make), {}) for name, make in test_selections.NETWORKS.items()},
    **{f"tiles of {name}": (tflite(lambda rng, axis=axis: test_selections.tiled(rng, axis)), {})
       for axis, name in ((1, "rows"), (2, "columns"))},
    "a small network of TFLite": (lambda: import_file(DATA / "small.tflite"), {}),
}  # fmt: skip
"""Networks, and their foldings where the command's own one is not meant."""
LARGE: dict[str, tuple[Made, Mapping[str, object]]] = {
    "jet tagging with features of 20 bits": (
        lambda: import_file(data("qonnx/qkeras_jettagging.onnx"), spec=parse_input("signed20:1/131072")), {}
    ),
    "intrusion detection": (
        lambda: import_file(data("qonnx/unsw_nb15-mlp-w2a2.onnx"), spec=parse_input("unsigned1")), BITS
    ),
    "SFC": (lambda: import_file(data("sfc_1w2a_untrained.onnx")), BITS),
    "TFC": (lambda: import_file(data("tfc_1w1a.onnx")), BITS),
    "MLPerf Tiny's autoencoder": (lambda: import_file(data("mlperf_tiny/ad01_int8.tflite")), {"kfp": 16, "kgp": 8}),
    "an SSD of 192 x 192": (
        lambda: import_file(data("tflite_real/COCO_ssd_mobilenet_v1_025_192_int8.tflite")),
        {"kfp": 16, "kgp": 16, "pfp": 16, "ol": 16, "depthwise": True}
    ),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_goldens(name, tmp_path):
    check(*CASES[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_outputs_of_large_networks_are_goldens(name, tmp_path):
    check(*LARGE[name], tmp_path)


def check(make, folding, folder):
    made = make()
    images = real_inputs(made, sample_inputs(made, 1, seed=3)[:2]).astype(np.int64 if made.host.integers else float)
    on_hardware(made, images, folder / "build", **folding)
