"""The kernels on a GPU (marker gpu); and without one, that gpu.py launches them as fiber.py does."""

import contextlib
import ctypes
import sys
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from bitloom.golden.kernels.tiled import gpu, kernel
from bitloom.golden.kernels.tiled.plan import KERNELS, GpuLimits, plan
from tests.errors import value_error
from tests.golden.kernels.tiled import fiber

from .cases import case, random_case
from .test_network import by_numpy, network


def usable(name):
    """Whether this GPU runs the kernel."""
    try:
        gpu.check_kernel("conv", name, gpu.capability())
    except ValueError:
        return False
    return True


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(120))
def test_equals_golden(seed, name):
    if not usable(name):
        pytest.skip(f"this GPU does not run {name}")
    conv_case, _ = random_case(seed)
    conv_case.check(gpu.run(conv_case.layer, conv_case.words, plan(conv_case.layer, conv_case.words, kernel=name)))


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "options",
    [
        {"block": (64, 2, 1)},
        {"block": (32, 3, 1), "patch": (3, 7)},
        {"block": (32, 2, 2), "patch": (8, 8)},
        {"limits": GpuLimits(shared_bytes=9_000)},
        {"block": (128, 2, 1), "patch": (4, 8), "limits": GpuLimits(shared_bytes=96 * 1024)},
    ],
    ids=str,
)
def test_any_tile_gives_the_same(options, name):
    if not usable(name):
        pytest.skip(f"this GPU does not run {name}")
    conv_case = case(images=3, size=(17, 33), channels=128, out_channels=65, padding=(1, 1, 1, 1), pad="exact")
    conv_case.check(
        gpu.run(conv_case.layer, conv_case.words, plan(conv_case.layer, conv_case.words, kernel=name, **options))
    )


OPT_IN = 99 * 1024


class CudaError(Exception):
    pass


class Graph:
    """Launches that a stream captured."""

    def __init__(self):
        self.launches = []

    def launch(self, stream):
        assert stream.graph is None
        for launch in self.launches:
            launch()


class Stream(contextlib.nullcontext):
    """A stream in which everything is done at once, but what is captured is only kept."""

    current: ClassVar["Stream | None"] = None

    def __init__(self, *, non_blocking):
        super().__init__()
        assert non_blocking
        self.graph = None

    def __enter__(self):
        Stream.current = self

    def __exit__(self, *_):
        Stream.current = None

    def synchronize(self):
        assert self.graph is None

    def begin_capture(self):
        self.graph = Graph()

    def end_capture(self):
        graph, self.graph = self.graph, None
        return graph


class DeviceArray(np.ndarray):
    """An array of the fake device, which counts what is copied there and back."""

    copies: ClassVar[list[str]] = []

    def set(self, values):
        assert (self.shape, self.dtype) == (values.shape, values.dtype)
        self.copies.append("upload")
        self[:] = values

    def get(self):
        self.copies.append("download")
        return np.array(self)


def pool(name, grid, block, arguments):
    """The pool's kernel by fibers."""
    words, output, count, problem = arguments
    message = ctypes.create_string_buffer(256)
    library = fiber._library((4, 4), 0)
    bits = {"unsigned int": 32, "unsigned long long": 64}[name.partition("<")[2][:-1]]
    arrays = (words.ctypes.data, words.nbytes, output.ctypes.data)
    library.binary_pool(bits, *arrays, count, problem.ctypes.data, block[0], grid[0], message)
    assert message.value == b""


def fake_cupy(capability="86", devices=1, launches=None, multiprocessors=0):
    """The part of CuPy that gpu.py uses, on arrays of numpy and with fibers for threads."""

    class RawModule:
        def __init__(self, *, code, options, name_expressions):
            assert code == kernel.SOURCE.read_text()
            assert options[0] == "-std=c++17"
            self.names = name_expressions
            self.options = options

        def get_function(self, name):
            assert name in self.names
            return Function(name, self.options)

    class Function:
        def __init__(self, name, options):
            self.name = name
            self.options = options

        def __call__(self, grid, block, arguments, *, shared_mem):
            if Stream.current and Stream.current.graph:
                launch = partial(self, grid, block, arguments, shared_mem=shared_mem)
                Stream.current.graph.launches.append(launch)
                return
            allowed = getattr(self, "max_dynamic_shared_size_bytes", 48 * 1024)
            launches.append(
                SimpleNamespace(name=self.name, options=self.options, grid=grid, shared_mem=shared_mem, allowed=allowed)
            )
            if self.name.startswith("binary_pool"):
                pool(self.name, grid, block, arguments)
                return
            *arrays, problem = arguments
            pointers = [a.ctypes.data if a.ndim else int(a) or None for a in arrays]
            sizes = [a.nbytes if a.ndim else 0 for a in arrays]
            function, _, template = self.name[:-1].partition("<")
            word, rows, columns, _, *form = template.split(", ")
            kinds = {("binary_conv_popc", ()): "popc"}
            kinds |= {
                ("binary_conv_mma", (xor,)): f"mma-{'xor' if xor == 'true' else 'and'}" for xor in ("true", "false")
            }
            which = kinds[function, tuple(form)]
            blocks = np.arange(grid[0], dtype=np.uint32)
            launch = fiber.Launch(
                *pointers,
                problem=fiber.Problem.from_buffer_copy(problem.tobytes()),
                threads=(ctypes.c_uint * 3)(*block),
                blocks=blocks.ctypes.data,
                block_count=len(blocks),
                shared_bytes=shared_mem,
                input_bytes=sizes[0],
                weight_bytes=sizes[1],
                threshold_bytes=sizes[2],
            )
            message = ctypes.create_string_buffer(256)
            library = fiber._library((int(rows), int(columns)), 0)
            bits = {"unsigned int": 32, "unsigned long long": 64}[word]
            library.binary_conv(which.encode(), bits, ctypes.byref(launch), message)
            assert message.value == b""

    attributes = {"MaxSharedMemoryPerBlockOptin": OPT_IN, "MultiProcessorCount": multiprocessors}
    cuda = SimpleNamespace(
        Stream=Stream,
        Device=lambda: SimpleNamespace(compute_capability=capability, attributes=attributes),
        runtime=SimpleNamespace(getDeviceCount=lambda: devices, CUDARuntimeError=CudaError),
        nvrtc=SimpleNamespace(getVersion=lambda: (12, 9)),
    )
    empty = lambda shape, dtype: np.empty(shape, dtype).view(DeviceArray)  # noqa: E731
    return SimpleNamespace(asarray=np.asarray, asnumpy=np.asarray, RawModule=RawModule, empty=empty, cuda=cuda)


@pytest.fixture
def device(monkeypatch):
    """Puts a fake CuPy with these properties in place of the real one, if any; gives the list of its launches."""

    def make(**options):
        launches = []
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy(launches=launches, **options))
        gpu._compiled.cache_clear()
        return launches

    yield make
    gpu._compiled.cache_clear()


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    ("capability", "name"),
    [("75", "popc"), ("80", "mma-xor"), ("89", "mma-xor"), ("90", "mma-and"), ("120", "mma-and")],
)
@pytest.mark.parametrize("seed", [0, 1, 3, 5, 9, 14])  # both widths of words, bits and dots
def test_launches_the_best_kernel_of_the_device(device, capability, name, seed):
    launches = device(capability=capability)
    conv_case, _ = random_case(seed)
    conv_case.check(gpu.run(conv_case.layer, conv_case.words))
    images, _, *size = conv_case.words.shape
    how = gpu.best_plan(conv_case.layer, (images, *size))
    assert how.kernel in (name, "popc")
    (launch,) = launches
    assert launch.name == kernel.instance(how)
    assert launch.options == ("-std=c++17", f"--maxrregcount={how.register_limit}")
    assert launch.grid == (how.blocks,)
    assert launch.shared_mem == how.shared_bytes <= launch.allowed


@pytest.mark.parametrize(
    ("capability", "multiprocessors", "name", "block", "patch"),
    [
        ("90", 3, "mma-and", (32, 4, 2), (4, 8)),
        ("90", 4, "mma-and", (32, 2, 2), (2, 8)),
        ("90", 36, "popc", (32, 2, 2), (2, 2)),
        ("90", 49, "popc", (32, 2, 2), (1, 1)),
        ("75", 1, "popc", (32, 4, 4), (4, 4)),
    ],
)
def test_kernel_and_tiles_by_outputs_of_a_multiprocessor(device, capability, multiprocessors, name, block, patch):
    """96 channels of 16 x 16 outputs: 24,576."""
    conv_case = case(size=(16, 16), channels=64, out_channels=96, padding=(1, 1, 1, 1), pad="exact")
    launches = device(capability=capability, multiprocessors=multiprocessors)
    conv_case.check(gpu.run(conv_case.layer, conv_case.words))
    how = gpu.best_plan(conv_case.layer, (1, 16, 16))
    assert (how.kernel, how.block, how.patch) == (name, block, patch)
    assert (launches[0].name, launches[0].grid) == (kernel.instance(how), (how.blocks,))
    assert gpu.best_plan(conv_case.layer, (1, 16, 16), "mma-and").kernel == "mma-and"


def test_a_kernel_is_compiled_once_and_asks_for_shared_memory_above_the_default(device):
    launches = device()
    conv_case = case(size=(6, 6), channels=192, kernel=(7, 7), padding=(3, 3, 3, 3), pad="exact", word_bits=64)
    how = plan(conv_case.layer, conv_case.words, limits=GpuLimits(shared_bytes=64 * 1024))
    assert how.shared_bytes > 48 * 1024
    prepared = gpu.Prepared(how)
    output = np.empty(how.output_shape, how.output_dtype)
    assert prepared(conv_case.words, output) is output
    conv_case.check(output)
    conv_case.check(prepared(conv_case.words))
    gpu.Prepared(how)
    assert gpu._compiled.cache_info().misses == 1
    assert [launch.allowed for launch in launches] == [OPT_IN] * 2


@pytest.mark.parametrize("word_bits", [32, 64])
def test_a_network_stays_on_the_device(device, monkeypatch, word_bits):
    """One upload and one download, however many layers there are; a kernel for each; the next call uploads images."""
    copies = []
    monkeypatch.setattr(DeviceArray, "copies", copies)
    launches = device(capability="86")
    packed, words = network(word_bits)
    prepared = gpu.PreparedNetwork(packed, words.shape)
    for given in (words, words[::-1]):
        copies.clear()
        launches.clear()
        np.testing.assert_array_equal(prepared(given), by_numpy(packed, given))
        assert copies == ["upload", "download"]
        names = [launch.name.partition("<")[0] for launch in launches]
        assert names == ["binary_conv_mma", "binary_pool", "binary_conv_mma", "binary_conv_mma"]
    message = f"network: prepared for an input of shape {words.shape}, got {words[:1].shape}"
    with value_error(message):
        prepared(words[:1])


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("word_bits", [32, 64])
def test_a_network_on_a_gpu(word_bits, name):
    if not usable(name):
        pytest.skip(f"this GPU does not run {name}")
    packed, words = network(word_bits)
    np.testing.assert_array_equal(gpu.run_network(packed, words, name), by_numpy(packed, words))


def test_more_shared_memory_than_the_device_has(device):
    device()
    conv_case = case(channels=512, kernel=(7, 7), size=(7, 7), word_bits=64)
    how = plan(conv_case.layer, conv_case.words, limits=GpuLimits(shared_bytes=200 * 1024))
    message = f"conv: a block must need at most {OPT_IN} bytes of shared memory on this GPU, got {how.shared_bytes}"
    with value_error(message):
        gpu.Prepared(how)


def test_a_kernel_that_the_device_does_not_have(device):
    conv_case = case()
    for capability, name, message in (
        ("75", "mma-and", "conv: kernel mma-and must run on compute capability 8.0 or higher, got 7.5"),
        ("90", "mma-xor", "conv: kernel mma-xor must run on compute capability 8.0 to 8.9, got 9.0"),
    ):
        device(capability=capability)
        with value_error(message):
            gpu.run(conv_case.layer, conv_case.words, plan(conv_case.layer, conv_case.words, kernel=name))


def test_no_gpu_is_said_in_one_line(device, monkeypatch):
    conv_case = case()
    device(devices=0)
    assert gpu.missing() == "gpu: CUDA finds no device"

    def no_driver():
        raise CudaError("cudaErrorInsufficientDriver: the driver is too old\nmore")

    device()
    sys.modules["cupy"].cuda.runtime.getDeviceCount = no_driver
    assert gpu.missing() == "gpu: CUDA finds no device: cudaErrorInsufficientDriver: the driver is too old"
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.missing() == "gpu: CuPy is missing: pip install 'bitloom-fpga[gpu]'"
    with pytest.raises(gpu.GpuError, match=r"^gpu: CuPy is missing: pip install 'bitloom-fpga\[gpu\]'\Z"):
        gpu.run(conv_case.layer, conv_case.words)
    device()

    def no_library():
        raise RuntimeError("CuPy failed to load libnvrtc.so.12: OSError: no such file\nmore")

    sys.modules["cupy"].cuda.nvrtc.getVersion = no_library
    assert gpu.missing() == "gpu: NVRTC is missing: CuPy failed to load libnvrtc.so.12: OSError: no such file"
    device()
    assert gpu.missing() is None
