"""CNNs that PyTorch quantised after training (FX graphs, pt2e), exported to ONNX: beside PyTorch and onnxruntime."""

import numpy as np
import pytest

from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify

from .against import features
from .hardware import on_hardware

HINT = "is not installed: pip install 'bitloom-fpga[brevitas]'"
torch = pytest.importorskip("torch", reason=f"PyTorch {HINT}")
fx = pytest.importorskip("torch.ao.quantization.quantize_fx", reason="PyTorch has no FX quantisation any more")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = [pytest.mark.brevitas, pytest.mark.slow]

TRAINED = 1437


@pytest.fixture(scope="module")
def digits():
    """(1797, 1, 8, 8) images of 0..1, and their classes."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32)[:, None] / 16, torch.tensor(data.target)


def networks():
    """Untrained networks: batch normalisation and a pool of maxima; strides, a clip and a mean."""
    nn = torch.nn

    def block(inputs, outputs, *, norm=True, stride=1):
        norms = [nn.BatchNorm2d(outputs)] if norm else []
        return [nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1), *norms, nn.ReLU()]

    pools = [*block(1, 8), nn.MaxPool2d(2), *block(8, 16), nn.Flatten(), nn.Linear(256, 10)]
    mean = [*block(1, 16, stride=2), *block(16, 32, norm=False)]
    mean += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return {"pools": nn.Sequential(*pools), "mean": nn.Sequential(*mean)}


def trained(net, images, classes):
    """The network after some epochs, as it infers."""
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(8):
        for batch in torch.randperm(TRAINED).split(64):
            loss = torch.nn.functional.cross_entropy(net(images[batch]), classes[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval()


@pytest.mark.parametrize("backend", ["qnnpack", "x86"])  # per tensor and per channel
@pytest.mark.parametrize("name", ["pools", "mean"])
def test_digits(name, backend, digits, tmp_path):
    """Each of the 360 test images has PyTorch's class; scores are one step of the last quantiser apart at most."""
    images, classes = digits
    torch.manual_seed(1)
    net = trained(networks()[name], images, classes)
    prepared = fx.prepare_fx(net, torch.ao.quantization.get_default_qconfig_mapping(backend), (images[:1],))
    prepared(images[:TRAINED])
    net = fx.convert_fx(prepared)
    test = images[TRAINED:]
    path = tmp_path / "net.onnx"
    torch.backends.quantized.engine = "qnnpack" if backend == "qnnpack" else "x86"
    with torch.no_grad():
        by_pytorch = net(test).numpy()
    torch.onnx.export(net, (test[:1],), str(path), input_names=["x"], opset_version=17, dynamo=False)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    by_onnxruntime = np.concatenate([session.run(None, {"x": image[None]})[0] for image in test.numpy()])
    imported = import_file(path)
    verify(imported, 2)
    got = imported.host.scores(imported.model.forward(features(imported, test.numpy())))
    step = float(imported.graph.sections[-1].quantised.step)
    for wanted in (by_onnxruntime, by_pytorch):
        different = np.rint(np.abs(got - wanted) / step)
        print(f"{name}, {backend}: {(different > 0).sum()} of {wanted.size} scores differ")
        assert different.max() <= 1
        assert (different > 0).mean() < 0.02
    right = classes[TRAINED:].numpy()
    assert (by_onnxruntime.argmax(axis=1) == right).mean() > 0.8
    on_hardware(imported, test.numpy()[:4], tmp_path / "build", kfp=8, kgp=8)


def test_export_of_today(digits, tmp_path):
    """torch.export, torchao's pt2e quantisation for XNNPACK, and PyTorch's own exporter: onnxruntime's classes."""
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e", reason="torchao is not installed")
    xnnpack = pytest.importorskip("torchao.testing.pt2e._xnnpack_quantizer", reason="torchao has no XNNPACK quantiser")
    images, classes = digits
    torch.manual_seed(1)
    net = trained(networks()["pools"], images, classes)
    quantiser = xnnpack.XNNPACKQuantizer().set_global(xnnpack.get_symmetric_quantization_config())
    prepared = pt2e.prepare_pt2e(torch.export.export(net, (images[:1],)).module(), quantiser)
    for image in images[:TRAINED:8]:
        prepared(image[None])
    test = images[TRAINED:].numpy()
    path = tmp_path / "net.onnx"
    torch.onnx.export(pt2e.convert_pt2e(prepared), (images[:1],), str(path), dynamo=True, external_data=False)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    wanted = np.concatenate([session.run(None, {name: image[None]})[0] for image in test])
    imported = import_file(path)
    verify(imported, 2)
    got = imported.host.scores(imported.model.forward(features(imported, test)))
    different = np.rint(np.abs(got - wanted) / float(imported.graph.sections[-1].quantised.step))
    print(f"pt2e: {(different > 0).sum()} of {wanted.size} scores differ")
    assert different.max() <= 1
    assert (different > 0).mean() < 0.02
    assert (wanted.argmax(axis=1) == classes[TRAINED:].numpy()).mean() > 0.8
    on_hardware(imported, test[:4], tmp_path / "build", kfp=8, kgp=8)
