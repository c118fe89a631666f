"""Inputs and kernels made binary on line (spec A9), through the driver, against golden; and binary inputs on the same
hardware."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.encoding import BIPOLAR, Encoding, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Map
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet, packets
from bitloom.hls_gen.design.rows import pack_rows
from bitloom.overlay.build.build import Build, build
from bitloom.overlay.build.run import Conditions, run
from bitloom.overlay.virtual.board import activate
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import random_images, random_model

FOLDING = Npu.of(kfp=6, kgp=4, pfp=3, ol=2, acc_bits=16, binariser_bits=9, kernel_binariser=True)


def network(name: str, encoding: Encoding, binarise: bool) -> Network:
    return network_of(
        Map(height=6, width=5, channels=7, encoding=encoding),
        "threshold entry" * binarise,
        "conv_1 9 3x2 padding=1/0/1/1, act_1, max_pool pool_1 2x2 2x2, dense_2 5",
        name=name,
    )


KINDS = {"unsigned_8": unsigned(8), "signed_3": signed(3), "binary": BIPOLAR, "planes": signed(4)}
MODELS = {
    name: random_model(network(name, encoding, name in ("unsigned_8", "signed_3")), seed)
    for seed, (name, encoding) in enumerate(KINDS.items())
}


@pytest.fixture(scope="module")
def binarised(tmp_path_factory: pytest.TempPathFactory) -> Build:
    models = list(MODELS.values())
    return build(tmp_path_factory.mktemp("binariser") / "build", size_memories("binariser", models, FOLDING), models)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_bit_exact(binarised: Build, name: str, stall: float) -> None:
    model = MODELS[name]
    images = random_images(model.network, 6, 7)
    assert run(binarised, model, images, conditions=Conditions(stall=stall, seed=3)).bit_exact_frames == 6


def test_kernels_may_be_any_integers_of_the_same_signs(binarised: Build) -> None:
    model = MODELS["unsigned_8"]
    rng = np.random.default_rng(1)
    manifest = Manifest.load(binarised.bit.with_suffix(".manifest.json"))
    program = binarised.program("unsigned_8")
    parts = list[np.ndarray]()
    for head, memory, rows in packets(manifest, program.parameters):
        rows = rows[:, : memory.words]
        if memory.name == "kernels":
            sent = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little", count=memory.width)
            sign = sent.reshape(-1, 8)[:, 7:]
            sent = np.concatenate([rng.integers(0, 2, (len(sign), 7)), sign], axis=1).reshape(sent.shape)
            rows = pack_rows(memory.width, sent)
        parts.append(load_packet(manifest, head.npu, memory.name, head.address, rows))
    other = replace(program, parameters=np.concatenate(parts))
    assert (other.parameters != program.parameters).any()
    images = random_images(model.network, 3, 2)
    board = activate()
    try:
        with Accelerator(binarised.bit) as accelerator:
            accelerator.load(other)
            np.testing.assert_array_equal(accelerator.predict(images), packed.forward(model, images))
    finally:
        board.close()


def test_both_directions_occur() -> None:
    entries = [m.arrays["entry"]["direction"] for m in MODELS.values() if "entry" in m.arrays]
    assert all(set(d.tolist()) == {-1, 1} for d in entries)


def test_what_the_binariser_cannot_take_is_told(tmp_path: Path) -> None:
    wide = random_model(network("wide", unsigned(9), True), 0)
    rule = "entry: the binariser makes one bit of integers of 9 bits in two's complement"
    with value_error(f"{rule}, got 1 levels of unsigned 9 bit (0..511)"):
        size_memories("binariser", [wide], FOLDING)


def test_images_are_checked(binarised: Build) -> None:
    model: Model = MODELS["unsigned_8"]
    images = np.full((1, 6, 5, 7), 256)
    with value_error("unsigned_8: images: values must be unsigned 8 bit (0..255), got 256"):
        run(binarised, model, images)
