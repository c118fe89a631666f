"""The compiler before the hardware: programs, run by the plain interpreter of their packets, equal the definition."""

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed
from bitloom.golden.file import model_digest
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from tests import networks as drawn
from tests.cases import case_map, random_images, random_model
from tests.errors import value_error

from .foldings import CASES, FOLDINGS, ORDERS, changed, design_manifest, fit_one, fitted, npu_of
from .interpreter import Deadlock, Device


def check(model: Model, images: np.ndarray, design: Manifest, map_order: str) -> None:
    program = compile_model(model, design, CompileChoices(map_order=map_order))
    device = Device(design, program.parameters)
    words = device.run(program.pack_images(images))
    assert words.shape == (len(images), program.result_words)
    np.testing.assert_array_equal(program.unpack_results(words), model.forward(images))
    assert device.beats == len(images) * program.ideal_cycles


@pytest.mark.sample(15)
@pytest.mark.parametrize("map_order", ORDERS)
@pytest.mark.parametrize("folding", FOLDINGS)
@pytest.mark.parametrize("name", CASES)
def test_the_packets_compute_the_case(name, folding, map_order):
    model = CASES[name]
    check(model, random_images(model, 2, np.random.default_rng(3)), fitted(model, folding, map_order), map_order)


def check_drawn(data):
    kfp, kgp, pfp = (data.draw(st.integers(1, most)) for most in (80, 20, 40))
    npu = Npu.of(kfp=kfp, kgp=kgp, pfp=pfp, ol=data.draw(st.integers(1, kgp)))
    if npu.array.kfp > 2 and data.draw(st.booleans()):
        npu = npu.changed(planes=min(8, npu.array.kfp - 1))
    network, map_order = data.draw(drawn.networks(input_bits=npu.array.planes or 8)), data.draw(st.sampled_from(ORDERS))
    model = drawn.random_model(network, 5)
    design = fit_one(model, npu, map_order, data.draw(st.sampled_from([32, 64])))
    network_plan = plan(model, design.npus, CompileChoices(map_order=map_order))
    if sum(beats for _, beats in network_plan.ideal) * npu.array.kgp < 60_000:
        check(model, drawn.random_images(network, 2, 6), design, map_order)


@drawn.few_and_many(8, 60)
def test_the_packets_compute_random_networks(count):
    drawn.check_draws(count, check_drawn, st.data())


def two_layers(channels: int, encoding: Encoding = BIPOLAR, out: int = 9) -> Model:
    layers = (
        Conv(name="conv_1", out_channels=out, kernel=(2, 3), stride=(1, 2), padding=(1, 0, 0, 1)),
        Threshold(name="act_1"),
        Dense(name="dense", out_channels=4),
    )
    network = Network(name="net", input=case_map(4, 5, channels, encoding), layers=layers, classes=tuple("abcd"))
    return random_model(network, np.random.default_rng(1))


def test_doubled_thresholds_fit_the_smallest_accumulator():
    """Sums of an odd number of ternary weights are doubled, to 6 at most; a threshold never reached is 7, not 8."""
    layers = (Dense(name="dense", out_channels=2, weight=TERNARY), Threshold(name="act"))
    arrays = {
        "dense": {"weight": np.ones((2, 1, 1, 3), int)},
        "act": {"threshold": np.array([[4], [3]]), "direction": np.ones(2, int)},
    }
    model = Model(Network(name="net", input=case_map(1, 1, 3), layers=layers), arrays)
    design = fitted(model)
    assert design.npus[0].array.acc_bits == 4
    check(model, np.array([[1, 1, 1], [-1, 1, 1]]).reshape(2, 1, 1, 3), design, "pull")


@pytest.mark.sample(4)
@pytest.mark.parametrize("out", [4, 5, 8])
@pytest.mark.parametrize("kgp", [1, 2, 4])
def test_memories_that_are_full_to_the_last_row(out, kgp):
    """Where a layer has no rows, its base would lie behind the memory's end: 0 instead."""
    model = two_layers(4, out=out)
    design = fit_one(model, Npu.of(kfp=4, kgp=kgp, pfp=4, ol=1))
    check(model, random_images(model, 1, np.random.default_rng(1)), design, "auto")


@pytest.mark.parametrize("map_order", ORDERS)
def test_the_interpreter_notices_a_wrong_hold(map_order):
    """A tuple given back one tuple too early is overwritten; two too late, and a word never comes."""
    model = CASES["conv_padding"]
    design = fitted(model, "k3_g5", map_order)
    program = compile_model(model, design, CompileChoices(map_order=map_order))
    images = random_images(model, 2, np.random.default_rng(3))
    payloads = program.pack_images(images)
    early, late = Device(design, program.parameters), Device(design, program.parameters)
    early.units[0].row("layers", 0)["hold_tuples"] -= 1
    assert (program.unpack_results(early.run(payloads)) != model.forward(images)).any()
    late.units[0].row("layers", 0)["hold_tuples"] += 2
    with pytest.raises(Deadlock):
        late.run(payloads)


def test_a_program_is_the_same_bytes_twice(tmp_path):
    model = two_layers(5, signed(5))
    design = fitted(model)
    for name in ("a", "b"):
        compile_model(model, design).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_the_program_says():
    model = two_layers(5)
    program = compile_model(model, fitted(model))
    assert (program.name, program.classes, program.output_kind) == ("net", ("a", "b", "c", "d"), "raw")
    assert (program.input, program.output_shape) == (model.network.input, (1, 1, 4))
    assert (program.design_digest, program.model_digest) == ("0" * 64, model_digest(model))
    taps = (4 * 2 - 1) * (2 * 3)  # windows of 2 x 3 taps on 4 x 2 outputs; there is no row above
    words = 2 * 3  # 9 channels in words of 3 out of words of 4
    assert program.layers == (("conv_1", taps * 2 * 2), ("dense", 4 * 2 * words))
    assert program.ideal_cycles == sum(beats for _, beats in program.layers)


def test_packets_come_by_id_and_the_network_row_last():
    """Only behind the network row may a frame come (device.md, "Packets")."""
    model = CASES["small_cnn"]
    design = fitted(model, map_order="raster")
    program = compile_model(model, design, CompileChoices(map_order="raster"))
    first = ["inputs", "layers", "flags", "olds", "jumps", "kernels", "results", "thresholds"]
    pool_unit = ["pool_inputs", "pool_layers", "pool_flags", "pool_olds"]
    names = [memory.name for _, memory, _ in packets(design, program.parameters)]
    assert names == [*first, *pool_unit, "network"]


DEPTHS = plan(CASES["small_cnn"], [npu_of("k3_g5")], CompileChoices(map_order="raster")).needs[0].capacities


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [name for name, need in DEPTHS.items() if need > 1])
def test_what_does_not_fit_is_refused(name):
    """One row less than needed, for every memory, and one bit less."""
    model = CASES["small_cnn"]
    need = DEPTHS[name]
    design = fitted(model, "k3_g5", "raster")
    design = changed(design, **{name: need})
    compile_model(model, design, CompileChoices(map_order="raster"))
    design = changed(design, **{name: need - 1})
    with value_error(f"small_cnn: {name} must be >= {need}, design small has {need - 1}"):
        compile_model(model, design, CompileChoices(map_order="raster"))


def test_all_that_does_not_fit_is_told_at_once():
    model = CASES["small_cnn"]
    few = ("windows", "taps", "kernel_rows", "threshold_rows")
    design = changed(fitted(model, "k3_g5", "raster"), **{name: DEPTHS[name] - 1 for name in few})
    told = "; ".join(f"{name} must be >= {DEPTHS[name]}, design small has {DEPTHS[name] - 1}" for name in few)
    with value_error(f"small_cnn: {told}"):
        compile_model(model, design, CompileChoices(map_order="raster"))


def test_a_design_without_shifts_takes_no_integers():
    design = design_manifest(Design(name="plain", npus=(Npu.of(shift_bits=0, acc_bits=12, kernel_rows=4096),)))
    check(two_layers(5), random_images(two_layers(5), 1, np.random.default_rng(0)), design, "pull")
    with value_error("net: an input of 3 bit planes needs shifts up to 2, the NPU has shift_bits = 0"):
        compile_model(two_layers(5, signed(3)), design)


@pytest.mark.parametrize(("stream_bits", "second"), [(32, 3), (64, 4)])
def test_each_map_that_leaves_begins_with_a_stream_word(stream_bits: int, second: int) -> None:
    """Sums are words of 32 bits each; three of them leave first."""
    heads = [Dense(name=f"head_{n}", inputs=("act_1",), out_channels=n, weight=signed(3)) for n in (5, 3)]
    layers = (
        Conv(name="conv_1", out_channels=4, kernel=(2, 2), weight=signed(3)),
        Requantise(name="act_1", encoding=signed(4)),
        *heads,
        Outputs(name="outputs", inputs=tuple(head.name for head in heads)),
    )
    network = Network(name="heads", input=case_map(3, 4, 2, signed(4)), layers=layers)
    model = drawn.random_model(network, 0, acc_bits=20)
    npu = Npu.of(engine="integer", feature_bits=4, weight_bits=3, shift_bits=0, kfp=2, kgp=2)
    design = size_memories("heads", [model], npu, stream_bits=stream_bits)
    five, three = compile_model(model, Manifest.of(design, "0" * 64)).results
    assert (three.first, five.first) == (0, second)
