"""The driver, a program and images on a fake board (fake_device.py), for tests of the driver."""

import re

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.frames import loads
from bitloom.hls_gen.design.signature import loads_signature
from tests.cases import random_images

from . import design
from .fake_core import FakeCore
from .fake_device import FakeDevice


def signature_of(program, manifest):
    """The signature that the device shows once the driver has loaded a program: of all that it sends."""
    return loads_signature(manifest, np.concatenate(loads(program, manifest, 1 << 20)))


class Bench:
    """A device, a design on it, a model and its program."""

    def __init__(self, folder, stream_bits=32, thresholds=False):
        self.path = design.write_overlay(folder, stream_bits)
        self.manifest = design.manifest(stream_bits)
        self.device = FakeDevice(FakeCore(self.manifest))
        self.model = design.model(thresholds=thresholds)
        self.program = design.program(self.model, self.manifest)
        self.signature = signature_of(self.program, self.manifest)
        self.images = random_images(self.model, 11, np.random.default_rng(2))
        self.expected = self.model.forward(self.images)

    def accelerator(self, **options):
        return Accelerator(self.path, device=self.device, **{"timeout": 0.2, **options})

    def loaded(self, **options):
        accelerator = self.accelerator(**options)
        accelerator.load(self.program)
        return accelerator


def raises(kind, message):
    return pytest.raises(kind, match=rf"^{re.escape(message)}\Z")


def recovers(bench, accelerator):
    resets = bench.device.dma.resets
    np.testing.assert_array_equal(accelerator.predict(bench.images, batch=3), bench.expected)
    assert bench.device.dma.resets == resets + 1
    np.testing.assert_array_equal(accelerator.predict(bench.images, batch=3), bench.expected)
    assert bench.device.dma.resets == resets + 1, "one reset is enough"
