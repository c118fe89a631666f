"""BitloomOverlay: pynq's conventions, and the accelerator behind them."""

import asyncio
import inspect
import re

import numpy as np
import pynq
import pytest
from pynq.pl_server.device import Device

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DesignMismatch, DeviceError
from bitloom.driver.link import Core
from bitloom.driver.overlay import BitloomOverlay
from bitloom.driver.training_machine import TrainingMachine
from tests.cases import random_images

from . import design
from .fake_core import FakeCore
from .fake_device import FakeDevice


class Bench:
    """A fake device, an overlay for it, a program file, images and what golden says."""

    def __init__(self, folder):
        self.path = design.write_overlay(folder)
        self.device = FakeDevice(FakeCore(design.manifest()))
        model = design.model()
        self.program = folder / "dense.program.npz"
        design.program(model, design.manifest()).save(self.program)
        self.images = random_images(model, 5, np.random.default_rng(2))
        self.expected = model.forward(self.images)
        (npu,) = design.manifest().npus
        self.hardware = f"1 NPU of {npu.array.kfp} x {npu.array.kgp} lanes, {design.manifest().stream_bits}-bit streams"

    def overlay(self, **options):
        return BitloomOverlay(str(self.path), device=self.device, **{"timeout": 0.2, **options})


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_a_program_file_and_images(bench):
    with bench.overlay() as overlay:
        overlay.load(bench.program)
        np.testing.assert_array_equal(overlay.predict(bench.images), bench.expected)
        classes = overlay.accelerator.program.classify(bench.expected)
        np.testing.assert_array_equal(overlay.classify(bench.images, batch=2), classes)
        np.testing.assert_array_equal(asyncio.run(overlay.predict_async(bench.images)), bench.expected)
        assert overlay.counters() == overlay.accelerator.counters()
        assert overlay.counters()["frames"] == 15
        assert overlay.utilisation == overlay.accelerator.utilisation > (0,)
        overlay.clear_counters()
        assert overlay.counters()["frames"] == 0
    assert not bench.device.allocated


def test_it_says_what_it_is(bench):
    overlay = bench.overlay()
    stem = bench.path.stem
    assert repr(overlay.accelerator) == f"<Accelerator {stem}: no program; {bench.hardware}>"
    overlay.load(bench.program)
    accelerator = f"<Accelerator {stem}: {overlay.accelerator.program.name}; {bench.hardware}>"
    assert repr(overlay) == f"<BitloomOverlay {bench.path}: {accelerator}>"
    overlay.free()
    assert repr(overlay) == f"<BitloomOverlay {bench.path}: not in use>"


def test_the_path_may_be_any_path(bench):
    assert BitloomOverlay(bench.path, device=bench.device).bitfile_name == str(bench.path)


def test_it_is_called_as_pynqs_overlays_are():
    wanted = {"bitfile_name": inspect.Parameter.empty, "download": True, "ignore_version": False, "device": None}
    parameters = inspect.signature(BitloomOverlay).parameters
    assert {name: parameters[name].default for name in parameters if name != "options"} == wanted
    assert list(parameters) == [*wanted, "options"]
    assert issubclass(BitloomOverlay, pynq.Overlay)


def test_hardware_is_checked_when_it_is_loaded(bench):
    bench.device.core.constants[0] = 7
    with pytest.raises(DesignMismatch, match=r"^fake: IDENT must be 0x424C4D31, got 0x00000007$"):
        bench.overlay()


def test_without_download_nothing_is_touched(bench):
    bench.device.read_registers = bench.device.write_registers = None
    overlay = bench.overlay(download=False)
    assert "npu_0" in overlay.ip_dict
    assert not hasattr(bench.device, "downloads")
    del bench.device.read_registers, bench.device.write_registers
    overlay.load(bench.program)
    np.testing.assert_array_equal(overlay.predict(bench.images), bench.expected)


def test_download_begins_anew(bench):
    overlay = bench.overlay()
    overlay.load(bench.program)
    overlay.predict(bench.images)
    first = overlay.accelerator
    overlay.download()
    assert not bench.device.allocated
    assert overlay.accelerator is not first
    with pytest.raises(DeviceError, match=r"^fake: a program must be loaded before images, got none$"):
        overlay.predict(bench.images)
    overlay.load(bench.program)
    np.testing.assert_array_equal(overlay.predict(bench.images), bench.expected)


def test_another_overlay_in_its_place(bench):
    first = bench.overlay()
    first.free()
    bench.overlay()
    message = f"{bench.path}: the overlay must be loaded, got another one: call download()"
    with pytest.raises(DeviceError, match=rf"^{re.escape(message)}$"):
        first.load(bench.program)
    first.download()
    first.load(bench.program)
    np.testing.assert_array_equal(first.predict(bench.images), bench.expected)


def test_another_version_of_the_core(bench):
    bench.device.cores["npu_0"]["type"] = "bitloom:bitloom:npu:0.3"
    with pytest.warns(UserWarning, match="Use ignore_version=True"):
        overlay = bench.overlay(download=False)
    assert not isinstance(overlay.npu_0, Core)
    assert isinstance(bench.overlay(download=False, ignore_version=True).npu_0, Core)


@pytest.mark.parametrize("kind", [BitloomOverlay, Accelerator, TrainingMachine])
def test_without_a_board(kind, bench, monkeypatch):
    """On a PC, before a virtual board was made; pynq says "No Devices Found"."""
    monkeypatch.delattr(Device, "_active_device", raising=False)
    monkeypatch.delattr(Device, "_devices", raising=False)
    monkeypatch.setattr(type(Device), "_subclasses", {})
    with pytest.raises(DeviceError) as error:
        kind(str(bench.path))
    assert str(error.value) == (
        f"{bench.path.stem}: a PYNQ board must be there, got none; for a virtual board say first: "
        "from bitloom.overlay.virtual.board import activate; activate()"
    )
