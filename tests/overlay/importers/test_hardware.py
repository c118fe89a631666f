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


def tflite(chain: Callable[..., Chain], *arguments: object) -> Made:
    """A network of TFLite, which ``chain`` makes of a generator of random numbers and the other arguments."""
    return lambda: test_tflite.import_chain(chain(np.random.default_rng(6), *arguments))


def onnx(chain: Callable[..., object], *arguments: object, **options: str) -> Made:
    """A network of ONNX, which ``chain`` makes as for ``tflite``."""
    return lambda: against.import_chain(chain(np.random.default_rng(6), *arguments), **options)


def looked_up(place: str) -> Made:
    return tflite(lambda rng: test_curves.PLACES[place](Chain((4, 5, 3), 0.02, 7), rng).flat().dense(rng, 7, (0.05, 3)))


def bent(rng: np.random.Generator, name: str) -> object:
    return test_boundaries.network(test_boundaries.CHANNELS[name])


def between(rng: np.random.Generator, name: str) -> object:
    return test_curves.between(test_pointwise.FORMULAS[name])


def mish(rng: np.random.Generator) -> object:
    return test_curves.between(lambda chain: chain.node("Mish"), version=18)


def selu(rng: np.random.Generator) -> Chain:
    return test_pointwise.ended(test_pointwise.selu(test_pointwise.begun(rng)), rng)


def upsampled(rng: np.random.Generator) -> object:
    return test_growth.integers_upsampled(np.int8, *test_growth.LINEAR["half_pixel"])


def transposed(rng: np.random.Generator) -> object:
    return test_growth.transposed_by_unsigned("taps on each other")


CASES: dict[str, Made] = {
    **{f"a U-Net by {name}": tflite(test_growth.unet, name) for name in test_growth.GROWING},
    "a detector of three sizes": tflite(test_growth.detector),
    "an autoencoder of transposed convolutions": tflite(test_growth.autoencoder),
    "depth to space": tflite(test_growth.subpixels),
    "integers that are interpolated": onnx(upsampled),
    **{
        f"padding that reflects, of a {reader}": onnx(test_growth.with_padding, reader, "reflect")
        for reader in ("Conv", "MaxPool")
    },
    "padding that reflects, of TFLite": tflite(test_tflite_forms.mirrored, ((1, 1), (2, 0))),
    "a detector with boxes": lambda: import_file(DATA / "ssd.tflite"),
    "constants, pads and means": tflite(test_tflite_forms.constants),
    "an input that several operators read": tflite(test_tflite_forms.readers),
    "sums that are rounded once and twice": tflite(test_tflite.rounded),
    "thresholds of channels that bend": onnx(bent, "slopes behind factors"),
    "ramps of channels that bend": onnx(bent, "both", engine="integer"),
    **{
        f"ramps behind {place}": tflite(lambda rng, place=place: test_ramps.tflite(place))
        for place in ("a convolution", "a sum", "a dense layer")
    },
    "a bottleneck with ramps": tflite(test_ramps.bottleneck),
    **{f"lookups of {place}": looked_up(place) for place in ("the input", "a sum", "a depthwise convolution")},
    "the logarithm of ONNX": onnx(between, "the logarithm"),
    "Mish of ONNX": onnx(mish),
    "SELU of several operators": tflite(selu),
    "pixels that become fewer": tflite(test_growth.SHORTER["pixels of the input"]),
    "a mean behind a padded mean": tflite(test_joined.mean_of_means, True),
    "the larger one of two maps": tflite(test_pointwise.two_of_one_scale, "MAXIMUM"),
    "a MobileNet with scales of channels": onnx(test_scales_of_channels.mobilenet),
    "a map on its side": tflite(test_tflite_forms.aside, "a padded convolution"),
    "a dense layer whose places leave": tflite(test_tflite_forms.places_leave),
    "weights of nine bits": onnx(lambda rng: test_buildable.WIDE["strides and padding"]()),
    "a transposed convolution with weights of nine bits": onnx(transposed),
    **{f"{op} of QONNX": onnx(test_operators.domained, op) for op in ("MultiThreshold", "Trunc")},
    "Upsample of older files": onnx(test_growth.upsampled),
    "a difference of maps": lambda: import_file(DATA / "subtraction.tflite"),
    "a map times a sigmoid": tflite(test_products.mobile, test_products.VECTORS["a sigmoid"]),
    "a map times a vector": tflite(test_products.mobile, test_products.VECTORS["none"]),
    "squeeze and excite": onnx(test_products.excited_onnx),
    "squeeze and excite without rows": onnx(test_products.excited_onnx, (11,)),
    **{f"channels that are cut, {kind}": tflite(test_selections.parts, kind) for kind in ("SPLIT", "SPLIT_V")},
    **{f"cuts, {name}": onnx(make) for name, make in test_selections.NETWORKS.items()},
    "tiles of rows": tflite(test_selections.tiled, 1),
    "tiles of columns": tflite(test_selections.tiled, 2),
    "a small network of TFLite": lambda: import_file(DATA / "small.tflite"),
}
LARGE: dict[str, Made] = {
    "jet tagging with features of 20 bits": lambda: import_file(
        data("qonnx/qkeras_jettagging.onnx"), spec=parse_input("signed20:1/131072")
    ),
    "intrusion detection": lambda: import_file(data("qonnx/unsw_nb15-mlp-w2a2.onnx"), spec=parse_input("unsigned1")),
    "SFC": lambda: import_file(data("sfc_1w2a_untrained.onnx")),
    "TFC": lambda: import_file(data("tfc_1w1a.onnx")),
    "MLPerf Tiny's autoencoder": lambda: import_file(data("mlperf_tiny/ad01_int8.tflite")),
    "an SSD of 192 x 192": lambda: import_file(data("tflite_real/COCO_ssd_mobilenet_v1_025_192_int8.tflite")),
}
FOLDINGS: dict[str, Mapping[str, object]] = {
    "a bottleneck with ramps": {"kfp": 8, "kgp": 4},
    **dict.fromkeys((name for name in CASES if name.startswith("lookups")), LOOKUPS),
    **dict.fromkeys(("the logarithm of ONNX", "Mish of ONNX", "SELU of several operators"), LOOKUPS),
    "the larger one of two maps": LOOKUPS,
    "a MobileNet with scales of channels": {"kfp": 4, "kgp": 2, "ol": 2, "pfp": 2, "depthwise": True},
    **dict.fromkeys(("intrusion detection", "SFC", "TFC"), BITS),
    "MLPerf Tiny's autoencoder": {"kfp": 16, "kgp": 8},
    "an SSD of 192 x 192": {"kfp": 16, "kgp": 16, "pfp": 16, "ol": 16, "depthwise": True},
}
"""Foldings of networks for which the command's own one is not meant."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_goldens(name, tmp_path):
    check(CASES[name], FOLDINGS.get(name, {}), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_outputs_of_large_networks_are_goldens(name, tmp_path):
    check(LARGE[name], FOLDINGS.get(name, {}), tmp_path)


def check(make, folding, folder):
    imported = make()
    images = real_inputs(imported, sample_inputs(imported, 1, seed=3)[:2]).astype(
        np.int64 if imported.host.integers else float
    )
    on_hardware(imported, images, folder / "build", **folding)
