"""CNV and LFC: golden against what an Ultra96 board recorded of the trained networks; reading of their files against
the files' own rule; the seeded networks.
"""

from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.classes import highest_set
from bitloom.golden.file import model_digest
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Model, Network
from bitloom.golden.zoo.bnn_pynq import (
    CIFAR,
    PADDED,
    cnv,
    cnv_images,
    lfc,
    lfc_images,
    seeded,
    trained,
)
from tests import board_data
from tests.errors import value_error

NETWORKS = {"cnv-w1a1": cnv(), "lfc-w1a1": lfc()}
SEEDED_DIGESTS = {
    "cnv-w1a1": "b28dccd3e366238a991cdccb5693cdcc66d166738042bbeec524b3422f2376ef",
    "lfc-w1a1": "d442ad9d750036255e0f5cb07bdb6ce4b662e61a6c78534efed1520a164aecda",
}
every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))


def maps(model: Model, images: np.ndarray, plain: bool = False) -> dict[str, np.ndarray]:
    """Each layer's output, by its name."""
    outputs = model.trace(images) if plain else packed.trace(model, images)
    return dict(zip((layer.name for layer in model.network.layers), outputs))


def random_input(network: Network, count: int, seed: int) -> np.ndarray:
    """Images with all values of the input equally likely."""
    rng = np.random.default_rng(seed)
    signs = network.input.encoding.kind == "bipolar"
    shape = (count, *network.input.shape)
    return 2 * rng.integers(0, 2, shape) - 1 if signs else rng.integers(-128, 128, shape)


# --- the trained networks, where they are -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_cnv() -> Model:
    return board_data.trained("cnv-w1a1")


@pytest.fixture(scope="module")
def trained_lfc() -> Model:
    return board_data.trained("lfc-w1a1")


def test_cnv_gives_the_scores_of_the_board(trained_cnv):
    recorded = board_data.photographs()
    outputs = packed.forward(trained_cnv, recorded.images)
    assert outputs.shape == (4, 1, 1, 10)
    np.testing.assert_array_equal(outputs, recorded.outputs)
    np.testing.assert_array_equal(outputs[:, 0, 0].argmax(axis=1), recorded.labels)


@pytest.mark.parametrize(("plain", "count"), [(False, 16), (True, 1)])
def test_cnv_gives_every_recorded_activation(trained_cnv, plain, count):
    recorded = board_data.cifar()
    outputs = maps(trained_cnv, recorded.images[:count], plain)
    assert len(recorded.maps) == 9
    for name, values in recorded.maps.items():
        np.testing.assert_array_equal(outputs[name], values[:count], err_msg=name)


@pytest.mark.parametrize(("plain", "count"), [(False, 256), (True, 8)])
def test_lfc_gives_the_recorded_outputs(trained_lfc, plain, count):
    recorded = board_data.mnist()
    outputs = maps(trained_lfc, recorded.images[:count], plain)
    assert recorded.outputs.shape == (256, 1, 1, 10)
    for name, values in recorded.maps.items():
        np.testing.assert_array_equal(outputs[name], values[:count], err_msg=name)


def test_lfc_is_right_on_9840_of_10000_images(trained_lfc):
    images, labels = board_data.mnist_test()
    assert (highest_set(packed.forward(trained_lfc, images)[:, 0, 0]) == labels).sum() == 9840


# --- files --------------------------------------------------------------------------------------------------------


def random_content(network: Network, seed: int) -> dict[str, np.ndarray]:
    """Arrays of a file of the network: random weights, those of the padding too, and thresholds near the middle."""
    rng = np.random.default_rng(seed)
    data: dict[str, np.ndarray] = {"classes": np.array(network.classes)}
    weighted = [(layer, source) for layer, source in network.chain("a test") if isinstance(layer, Weighted)]
    for i, (layer, source) in enumerate(weighted):
        outputs, inputs = PADDED.get((network.name, i), (layer.out_channels, layer.fan_in(source)))
        data[f"W{i}_shape"] = np.array([outputs, inputs])
        data[f"W{i}_bits"] = rng.integers(0, 256, (outputs, -(-inputs // 8)), dtype=np.uint8)
        middle, spread = (0, 400) if source.encoding.kind == "signed" else (inputs / 2, inputs**0.5 / 2)
        data[f"T{i}"] = np.rint(middle + spread * rng.standard_normal((outputs, 1))).astype(np.int32)
    if network.name == "cnv-w1a1":
        del data["T8"]
    return data


def by_the_files_rule(data: dict[str, np.ndarray], images: np.ndarray) -> np.ndarray:
    """Outputs of all rows of the last layer: numbers of matches, or bits, (N, outputs)."""
    convolutional = "W8_shape" in data
    x = images if convolutional else np.pad((images.reshape(len(images), 784) + 1) // 2, ((0, 0), (0, 832 - 784)))
    for i in range(9 if convolutional else 4):
        if convolutional and i < 6:
            windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))  # (N, H', W', C, ky, kx)
            columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(*windows.shape[:3], -1)
        else:
            columns = x.reshape(len(x), -1)
        ones = np.unpackbits(data[f"W{i}_bits"], axis=1, bitorder="little")[:, : data[f"W{i}_shape"][1]].T.astype(float)
        if convolutional and i == 0:
            accumulator = 2 * (columns @ (2 * ones - 1))
        else:
            accumulator = columns @ ones + (1 - columns) @ (1 - ones)
        if f"T{i}" not in data:
            return accumulator
        x = (data[f"T{i}"][:, 0] < accumulator).astype(float)
        if convolutional and i in (1, 3):
            n, height, width, channels = x.shape
            x = x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    return x


@every_network
def test_a_file_means_what_its_rule_says(network, tmp_path):
    """The padding of these files is not harmless: its weights are random."""
    data = random_content(network, 1)
    np.savez(tmp_path / "file.npz", **data)
    images = random_input(network, 3, 2)
    expected = by_the_files_rule(data, images)[:, :10]
    outputs = packed.forward(trained(network, tmp_path / "file.npz"), images)[:, 0, 0]
    np.testing.assert_array_equal((outputs + 512) / 2 if network.name == "cnv-w1a1" else (outputs + 1) / 2, expected)
    assert len(np.unique(expected)) > 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "cnv.npz"
    np.savez(path, **random_content(cnv(), 3))
    return path


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_gives_one_line_or_what_was_written(whole, tmp_path, seed):
    """Cut off, or with one byte changed, anywhere or in the zip's directory at the end. A byte that means nothing, such
    as a date, may go unnoticed."""
    rng = np.random.default_rng(seed)
    content = bytearray(whole.read_bytes())
    place = int(rng.integers(0 if seed % 2 else len(content) - 2000, len(content)))
    content[place] ^= int(rng.integers(1, 256))
    path = tmp_path / "damaged.npz"
    path.write_bytes(content if seed % 4 else content[:place])
    try:
        outcome = model_digest(trained(cnv(), path))
    except ValueError as e:
        outcome = str(e)
    if outcome != model_digest(trained(cnv(), whole)):
        assert outcome.startswith(f"{path}: ")
        assert "\n" not in outcome


def test_a_wrong_checksum_is_noticed(whole, tmp_path):
    path = tmp_path / "changed.npz"
    content = whole.read_bytes()
    path.write_bytes(content.replace(b"A\0\0\0i", b"B\0\0\0i", 1))
    rule = "must be a whole, unchanged zip archive, got: Bad CRC-32 for file 'classes.npy'"
    with value_error(f"{path}: {rule}"):
        trained(cnv(), path)


@pytest.mark.parametrize(
    ("name", "array", "rule"),
    [
        ("classes", np.array([*CIFAR[:9], "Lorry"]), f"classes must be {CIFAR}, got {str(CIFAR)[:57]}..."),
        ("W2_shape", np.array([64, 576]), "W2_shape must be (128, 576), got (64, 576)"),
        ("W0_bits", np.zeros((64, 3), np.uint8), "W0_bits must be uint8 of shape (64, 4), got uint8 of (64, 3)"),
        ("W8_bits", np.zeros((64, 64), np.int8), "W8_bits must be uint8 of shape (64, 64), got int8 of (64, 64)"),
        ("T7", np.zeros(512, np.int32), "T7 must be int32 of shape (512, 1), got int32 of (512,)"),
        (
            "T7",
            np.full((512, 1), 2**31 - 1, np.int32),
            "threshold_7.threshold: values must be signed 32 bit (-2147483648..2147483647), got 4294966784",
        ),
        ("T7", np.array([None]), "T7: must be an array of truth values or integers, got dtype '|O'"),
    ],
)
def test_each_rule_of_a_file(whole, tmp_path, name, array, rule):
    path = tmp_path / "other.npz"
    np.savez(path, **{**np.load(whole), name: array})
    with value_error(f"{path}: {rule}"):
        trained(cnv(), path)


def test_missing_arrays_are_named(whole, tmp_path):
    path = tmp_path / "less.npz"
    np.savez(path, classes=np.array(CIFAR), W0_shape=np.array([64, 27]))
    with value_error(f"{path}: must hold W0_bits.npy, got classes.npy, W0_shape.npy"):
        trained(cnv(), path)
    np.savez(path)
    with value_error(f"{path}: must hold classes.npy, got no member"):
        trained(cnv(), path)
    with pytest.raises(FileNotFoundError):
        trained(cnv(), tmp_path / "absent.npz")


def test_the_file_of_another_network_is_refused(whole):
    with value_error(f"{whole}: classes must be {tuple('0123456789')}, got {str(CIFAR)[:57]}..."):
        trained(lfc(), whole)


# --- seeded weights -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {name: seeded(network) for name, network in NETWORKS.items()}


@every_network
def test_seeded_weights_are_the_same_everywhere(models, network):
    assert model_digest(models[network.name]) == SEEDED_DIGESTS[network.name]


@every_network
def test_fast_equals_plain(models, network):
    images = random_input(network, 1, 6)
    for (name, plain), fast in zip(
        maps(models[network.name], images, True).items(), maps(models[network.name], images).values()
    ):
        np.testing.assert_array_equal(plain, fast, err_msg=name)


# --- images and classes -------------------------------------------------------------------------------------------


def test_images_of_cnv_are_signed_pixels():
    pixels = np.zeros((1, 32, 32, 3), np.uint8)
    pixels[0, 0, :2] = [[255, 128, 127], [254, 1, 64]]
    images = cnv_images(pixels)
    assert images.dtype == np.int8
    assert images[0, 0, :3].tolist() == [[127, 1, -1], [127, -127, -64], [-128, -128, -128]]


def test_images_of_lfc_are_signs_in_raster_order():
    pixels = np.zeros((2, 784), np.uint8)
    pixels[1, 28 * 3 + 5 : 28 * 3 + 8] = 127, 128, 255
    images = lfc_images(pixels)
    assert images.shape == (2, 28, 28, 1)
    assert np.argwhere(images == 1).tolist() == [[1, 3, 6, 0], [1, 3, 7, 0]]
    np.testing.assert_array_equal(lfc_images(pixels.reshape(2, 28, 28)), images)
