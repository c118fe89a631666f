"""Networks by name: what `load` gives, and what `source` says of it, with and without trained files."""

from pathlib import Path

import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest
from bitloom.golden.zoo import bnn_pynq, int8_ends
from tests import board_data
from tests.errors import OR_A_FILE, value_error

FILES = {"cnv-w1a1": "cnvW1A1_cifar10.npz", "lfc-w1a1": "lfcW1A1_mnist.npz"}


def test_each_network_has_its_name() -> None:
    names = networks.names()
    assert names == sorted({*names, "digits-cnn", "cifar-quick-int8", "bnn-int8-ends", "cnv-w2a2", *FILES})
    assert [networks.load(name).network.name for name in names] == names


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FILES)
def test_without_their_files_networks_have_seeded_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITLOOM_DATA", str(tmp_path))
    assert networks.source(name) == f"seeded weights: {FILES[name]} is not in {tmp_path}"
    network = {"cnv-w1a1": bnn_pynq.cnv, "lfc-w1a1": bnn_pynq.lfc}[name]()
    assert model_digest(networks.load(name)) == model_digest(bnn_pynq.seeded(network))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FILES)
def test_with_their_files_networks_are_trained(name: str) -> None:
    path = board_data.file(FILES[name])
    assert networks.source(name) == f"trained, from {FILES[name]}"
    model = networks.load(name)
    assert model_digest(model) == model_digest(bnn_pynq.trained(model.network, path))
    assert model_digest(model) != model_digest(bnn_pynq.seeded(model.network))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_not_replaced_by_seeded_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITLOOM_DATA", str(tmp_path))
    path = tmp_path / FILES[name]
    path.write_bytes(b"PK\x03\x04")
    with value_error(f"{path}: must be a whole, unchanged zip archive, got: File is not a zip file"):
        networks.load(name)


def test_seeded_weights_of_int8_ends_are_the_same_everywhere() -> None:
    assert model_digest(int8_ends.seeded()).startswith("fdbf813e7feec6c0")


def test_sources_of_the_other_networks(tmp_path: Path) -> None:
    assert networks.source("digits-cnn") == "trained, from digits-cnn.npz"
    assert networks.source("cifar-quick-int8") == "seeded weights"
    path = str(tmp_path / "mine.npz")
    file.save(networks.load("digits-cnn"), path)
    assert networks.source(path) == f"model file {path}"
    with value_error(f"network: must be one of {', '.join(networks.names())}, {OR_A_FILE}, got 'nonet'"):
        networks.source("nonet")
