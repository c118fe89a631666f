"""Networks made and exported by Brevitas as it is installed, imported, on simulated hardware, beside PyTorch.

They need PyTorch and Brevitas, which bitloom itself doesn't: ``pip install 'bitloom-fpga[brevitas]'``; then
``pytest -m brevitas``.
"""

import numpy as np
import pytest

from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify

from .against import features
from .hardware import on_hardware

HINT = "is not installed: pip install 'bitloom-fpga[brevitas]'"
torch = pytest.importorskip("torch", reason=f"PyTorch {HINT}")
pytest.importorskip("brevitas", reason=f"Brevitas {HINT}")
pytestmark = [pytest.mark.brevitas, pytest.mark.slow]  # an export takes PyTorch 20 s to a minute

BINARY = {"kfp": 64, "kgp": 32, "ol": 4}
BNN_PYNQ = [f"{name}_{bits}" for name in ("tfc", "sfc", "lfc", "cnv") for bits in ("1w1a", "1w2a", "2w2a")]
NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)


def untrained(net, shape):
    """The network with statistics and scales as some random images leave them, and any batch normalisation."""
    net.train()
    for _ in range(2):
        net(torch.rand(16, *shape))
    for module in net.modules():
        if isinstance(module, NORMS) and module.affine:
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias, std=0.5)
    return net.eval()


def exported(net, shape, folder, count, export="export_qonnx"):
    """The imported network, images, and PyTorch's scores in float64: in float32 a sum may cross a boundary."""
    import brevitas.export

    path = folder / "net.onnx"
    images = torch.rand(count, *shape)
    getattr(brevitas.export, export)(net, args=images[:1], export_path=str(path))
    with torch.no_grad():
        wanted = net.double()(images.double()).numpy()
    imported = import_file(path)
    assert len(verify(imported, 2)) > 4
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    return imported, images.numpy().astype(np.float64), wanted


def check(imported, images, wanted, frames, folder, **folding):
    """Scores of golden, and those of hardware for the first frames, are PyTorch's."""
    near = 1e-5 * max(1, np.abs(wanted).max())
    integers = features(imported, images)
    assert np.abs(imported.host.scores(imported.model.forward(integers)) - wanted).max() < near
    assert len(np.unique(wanted)) > 10  # else nothing was compared
    results = on_hardware(imported, images[:frames], folder, **folding).outputs
    assert np.abs(imported.host.scores(results) - wanted[:frames]).max() < near


@pytest.mark.parametrize("name", [name for name in BNN_PYNQ if name != "lfc_2w2a"])  # which Brevitas doesn't have
def test_bnn_pynq(name, tmp_path):
    """TFC, SFC, LFC and CNV of Brevitas' own examples."""
    models = pytest.importorskip("brevitas_examples.bnn_pynq.models", reason="Brevitas has its examples no more")
    torch.manual_seed(3)
    shape = (3, 32, 32) if name.startswith("cnv") else (1, 28, 28)
    net = untrained(models.model_with_cfg(name, pretrained=False)[0], shape)
    count = 4 if name.startswith("cnv") else 50
    imported, images, wanted = exported(net, shape, tmp_path, count)
    engine = "integer" if name in ("tfc_2w2a", "sfc_2w2a") else "binary"  # by cost; CNV's pixels have 8 bits
    assert set(imported.choice.engines) == {engine}
    if engine == "integer":
        check(imported, images, wanted, 2, tmp_path / "build", kfp=32, kgp=8, ol=4)
        return
    planes = {"planes": 8} if name.startswith("cnv") else {}
    check(imported, images, wanted, 2, tmp_path / "build", **BINARY, **planes)


def test_mobilenet_v1(tmp_path):
    """MobileNet-v1 of Brevitas' own examples, a quarter as wide, with 4 bits: maps have a scale for each channel in
    front of depthwise convolutions. Golden alone; test_scales_of_channels.py has its layers on hardware."""
    from configparser import ConfigParser

    from brevitas.nn import QuantIdentity

    models = pytest.importorskip("brevitas_examples.imagenet_classification.models.mobilenetv1")
    config = ConfigParser()
    config["MODEL"] = {"WIDTH_SCALE": "0.25", "NUM_CLASSES": "100"}
    first = {"FIRST_LAYER_BIT_WIDTH": "8", "FIRST_LAYER_STRIDE": "2", "FIRST_LAYER_PADDING": "1"}
    config["QUANT"] = {**first, "BIT_WIDTH": "4", "ROUND_AVG_POOL": "True"}
    torch.manual_seed(3)
    layers = QuantIdentity(bit_width=8, return_quant_tensor=True), models.quant_mobilenet_v1(config)
    imported, images, wanted = exported(
        untrained(torch.nn.Sequential(*layers), (3, 224, 224)), (3, 224, 224), tmp_path, 3
    )
    scores = imported.host.scores(imported.model.forward(features(imported, images)))
    np.testing.assert_allclose(scores, wanted, atol=1e-5 * np.abs(wanted).max())
    assert len(np.unique(wanted)) > 10  # else nothing was compared


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
def test_small_vgg(bits, tmp_path):
    """Convolutions with zero padding, a pool of maxima, a mean, and a dense layer."""
    from brevitas import nn as quantised
    from brevitas.quant import SignedBinaryWeightPerTensorConst

    torch.manual_seed(bits)
    weights = {"weight_bit_width": bits} if bits > 1 else {"weight_quant": SignedBinaryWeightPerTensorConst}
    layers = [quantised.QuantIdentity(bit_width=8)]
    for inputs, outputs in ((3, 6), (6, 8)):
        layers += [
            quantised.QuantConv2d(inputs, outputs, 3, padding=1, bias=False, **weights),
            torch.nn.BatchNorm2d(outputs),
            quantised.QuantReLU(bit_width=max(bits, 2)),
            torch.nn.MaxPool2d(2) if outputs == 6 else torch.nn.AvgPool2d(4),
        ]
    layers += [torch.nn.Flatten(), quantised.QuantLinear(8, 5, bias=True, **weights)]
    net = untrained(torch.nn.Sequential(*layers), (3, 8, 8))
    imported, images, wanted = exported(net, (3, 8, 8), tmp_path, 40)
    check(imported, images, wanted, 3, tmp_path / "build", kfp=8, kgp=4)


@pytest.mark.parametrize("bits", [2, 4])
def test_without_qonnx(bits, tmp_path):
    """As QuantizeLinear, Clip, DequantizeLinear, which has no bias of floats, and batch normalisation as it is."""
    from brevitas import nn as quantised

    torch.manual_seed(bits)
    bits_of_weights = {"bias": False, "weight_bit_width": bits}
    kept = {"return_quant_tensor": True}
    layers = [
        quantised.QuantIdentity(bit_width=8, **kept),
        quantised.QuantConv2d(3, 6, 3, padding=1, **bits_of_weights),
        torch.nn.BatchNorm2d(6),
        quantised.QuantReLU(bit_width=bits, **kept),
    ]
    layers += [torch.nn.MaxPool2d(2), torch.nn.Flatten(), quantised.QuantLinear(96, 5, **bits_of_weights)]
    net = untrained(torch.nn.Sequential(*layers), (3, 8, 8))
    imported, images, wanted = exported(net, (3, 8, 8), tmp_path, 40, "export_onnx_qcdq")
    check(imported, images, wanted, 3, tmp_path / "build", kfp=8, kgp=4)
