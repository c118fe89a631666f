"""Tables of notebooks say what the data say, in columns that stand under their heads."""

from types import SimpleNamespace

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.kernels import native
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.reference_designs import default_npu
from bitloom.overlay.show import notebook_tables as tables
from bitloom.overlay.show.cpu_time import CpuTime, cpu_time
from bitloom.overlay.study.map_orders import map_orders


@pytest.fixture(scope="module")
def model():
    return networks.load("digits-cnn")


def test_cores():
    overlay = SimpleNamespace(ip_dict={"npu_0": {"type": "npu", "phys_addr": 0xA000_0000}, "ps": {"type": "arm"}})
    assert tables.cores(overlay).splitlines()[1:] == ["npu_0  npu   0xA0000000", "ps     arm   0x00000000"]


def test_programs():
    program = SimpleNamespace(layers=[("conv_1", 1234), ("dense_2", 5)])
    wanted = ["layer    beats a frame", "conv_1           1,234", "dense_2              5"]
    assert tables.beats(program).splitlines() == wanted
    manifest = SimpleNamespace(npus=[Npu.of(kfp=8, kgp=4, tuple_words=8)] * 2)
    assert tables.npus(program, manifest).splitlines()[2].split() == ["NPU", "1:", "dense_2", "8", "4", "8", "5"]


def test_what_npus_did():
    counters = {"npu0_beats": 5, "npu0_wait_input": 2, "npu0_wait_room": 1, "npu0_wait_table": 0}
    assert tables.spent(counters, ["NPU 0"]).splitlines()[1].split() == ["NPU", "0", "5", "2", "1", "0", "8"]


def test_taps(model):
    conv = lower_alone(model).schedule("raster").by_stage["conv_1"]
    lines = tables.taps(conv, 6).splitlines()
    assert len(lines) == 7
    for t, line in enumerate(lines[1:]):
        row, column = divmod(int(conv.input_order[conv.index[t]]), conv.stage.width)
        assert line.split()[:5] == [str(conv.window[t]), str(conv.tap[t]), f"({row},", f"{column})", str(conv.index[t])]
        assert line.endswith("new") == bool(conv.new[t])


def test_orders(model):
    orders = map_orders(model, default_npu(model))
    *_, last = lines = tables.orders(orders).splitlines()
    bits = [orders["totals"][order]["memory_bits"] for order in ("pull", "raster")]
    built = f"{bits[0]:,} in pull order, {bits[1]:,} in raster order"
    assert last == f"as built, all bits: {built}; auto takes {orders['auto']}"
    layer = orders["layers"][0]
    wanted = [f"{layer[order][key]:,}" for key in ("tuples", "table_bits") for order in ("pull", "raster")]
    assert lines[1].split() == [layer["name"], *wanted]


def test_networks(model, monkeypatch, tmp_path):
    assert tables.maps(model.network).splitlines()[1] == "conv_1       (8, 8, 1)   (8, 8, 16)"
    monkeypatch.setenv("BITLOOM_DATA", str(tmp_path))
    assert tables.weights("cnv-w1a1") == "seeded weights"
    line = tables.models({"digits-cnn": model}).splitlines()[1]
    assert line == "digits-cnn  (8, 8, 1)  unsigned  trained, from digits-cnn.npz"


def test_foldings_and_memories():
    npus = [Npu.of(kfp=8, kgp=4), Npu.of(kfp=16, kgp=2)]
    lines = tables.foldings(npus, [0, 1, 1], ["a", "b", "c"]).splitlines()
    assert lines[1:] == ["NPU 0      8        4  a", "NPU 1     16        2  b, c"]
    largest = max(memory_map(npus[0]), key=lambda m: m.depth * m.width)
    assert tables.memories(npus[0], 1).splitlines()[1].split()[:2] == [largest.name, f"{largest.depth:,}"]


def test_modules(tmp_path):
    for name, lines in (("a", 3), ("b", 1200), ("c", 20)):
        (tmp_path / f"{name}.v").write_text("x\n" * lines)
    wanted = ["3 modules, 1,223 lines, the longest:", "module  lines", "b.v     1,200", "c.v        20"]
    assert tables.modules(tmp_path, count=2).splitlines() == wanted


def test_beside_the_processor(model):
    """Each line has the time of a frame and its inverse; cycles say where they come from."""
    lines = tables.beside_cpu(CpuTime(0.001, 0.00001, "BLAS"), 1358, virtual=True).splitlines()
    assert lines[0].split() == ["computed", "by", "us", "a", "frame", "frames", "a", "second"]
    assert [line.split()[-2:] for line in lines[1:]] == [["1,000.0", "1,000"], ["10.0", "100,000"], ["13.6", "73,638"]]
    assert lines[3].startswith("accelerator at 100 MHz, 1,358 cycles, simulated ")
    assert "50 MHz, 2 cycles, counted by the board" in tables.beside_cpu(CpuTime(1, 1, ""), 2, False, clock_mhz=50)
    measured = cpu_time(model, np.zeros((9, 8, 8, 1), np.int64))
    assert measured.kernels > 0
    assert measured.definition > 0
    assert measured.kernels_by == ("BLAS" if native.missing() else "C++")
