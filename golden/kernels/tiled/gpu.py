"""The CUDA source on a GPU: compiled by NVRTC for the plan and the device, launched by CuPy (extra ``gpu``)."""

from functools import lru_cache, partial
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array

from .conv import PackedConv
from .kernel import SOURCE, instance, pool_instance, pool_problem, problem
from .network import POOL_THREADS, PackedNetwork, PoolPlan
from .plan import TilePlan, plan_of_shape

MMA_FIRST, XOR_LAST = 80, 89
"""Compute capabilities, times 10, since which there is the binary matrix product, and to which the one with XOR."""

TILES = (
    ("mma", (32, 4, 2), (4, 8), 8192),
    ("mma", (32, 2, 2), (2, 8), 700),
    ("popc", (32, 4, 4), (4, 4), 16384),
    ("popc", (32, 2, 2), (2, 2), 512),
    ("popc", (32, 2, 2), (1, 1), 0),
)
"""Rows of: kind of kernel, threads of a block, outputs of a thread, and how many outputs the layer must have for each
multiprocessor of the GPU. The first row whose number a layer reaches is the fastest for it, as was measured on an H100
(`bitloom bench gpu`)."""

POOL_REGISTERS = 64
"""Registers that a thread of the pool's kernel may have."""


class GpuError(RuntimeError):
    """There is no GPU that could run the kernel; one line that says what is missing."""


def missing() -> str | None:
    """Say in one line why there is nothing to run on; None if there is a GPU."""
    try:
        _cupy()
    except GpuError as e:
        return str(e)
    return None


def capability() -> int:
    """Compute capability of the current GPU, times 10; GpuError if there is no GPU."""
    return int(_cupy().cuda.Device().compute_capability)


def best_kernel(device: int) -> str:
    """The kernel that is the fastest on a GPU of compute capability ``device``, times 10, by its architecture."""
    if device < MMA_FIRST:
        return "popc"
    return "mma-xor" if device <= XOR_LAST else "mma-and"


def best_plan(layer: PackedConv, shape: tuple[int, int, int], kernel: str | None = None) -> TilePlan:
    """The plan that is the fastest on the current GPU, for an input of so many images, rows and columns, ``shape``.

    Parameters
    ----------
    layer : PackedConv
    shape
        Images, rows and columns.
    kernel : str, optional
        One of `KERNELS`; by default the faster one: where there are outputs enough to keep the tensor cores busy the
        matrix product, else XOR and popcount, by which the few sums of a thread are ready sooner.

    Raises
    ------
    GpuError
        If there is no GPU, CuPy or NVRTC.
    ValueError
        If no block fits.
    """
    multiprocessors = _cupy().cuda.Device().attributes["MultiProcessorCount"]
    names = [kernel] if kernel else [best_kernel(capability()), "popc"]
    outputs = shape[0] * layer.out_channels * prod(layer.output_size(*shape[1:]))
    rows = [
        (name, block, patch, least)
        for kind, block, patch, least in TILES
        for name in names
        if name.partition("-")[0] == kind
    ]
    name, block, patch, _ = next((row for row in rows if outputs >= multiprocessors * row[-1]), rows[-1])
    return plan_of_shape(layer, shape, block=block, patch=patch, kernel=name)


def check_kernel(name: str, kernel: str, device: int) -> None:
    """ValueError, naming ``name``, where a device of that compute capability, times 10, can't run the kernel."""
    if (kernel != "popc" and device < MMA_FIRST) or (kernel == "mma-xor" and device > XOR_LAST):
        rule = f"{MMA_FIRST / 10} to {XOR_LAST / 10}" if kernel == "mma-xor" else f"{MMA_FIRST / 10} or higher"
        raise ValueError(f"{name}: kernel {kernel} must run on compute capability {rule}, got {device / 10}")


class Prepared:
    """A layer on the GPU, for inputs of one size: weights and thresholds are there, the kernel is compiled."""

    def __init__(self, plan: TilePlan) -> None:
        cupy = _cupy()
        layer = plan.layer
        check_kernel(layer.name, plan.kernel, capability())
        self.plan = plan
        largest = _largest_shared_bytes()
        if plan.shared_bytes > largest:
            raise ValueError(
                f"{layer.name}: a block must need at most {largest} bytes of shared memory on this GPU, "
                f"got {plan.shared_bytes}"
            )
        self._kernel = _compiled(instance(plan), plan.register_limit)
        self._weight = cupy.asarray(np.ascontiguousarray(layer.weight))
        self._threshold = np.uintp(0) if layer.threshold is None else cupy.asarray(layer.threshold)
        self._problem = _struct(problem(plan))

    def __call__(self, words: Any, output: Any = None) -> Any:
        """Start the kernel in CuPy's current stream and return at once.

        Parameters
        ----------
        words : (N, ceil(C/B), H, W) CuPy array
            Contiguous and of the plan: it is not looked at.
        output : CuPy array, optional
            Where the result goes; by default a new array.

        Returns
        -------
        CuPy array
            Words or dots, as the plan says.
        """
        if output is None:
            output = _cupy().empty(self.plan.output_shape, self.plan.output_dtype)
        bits, dots = (np.uintp(0), output) if self.plan.layer.threshold is None else (output, np.uintp(0))
        arguments = (words, self._weight, self._threshold, bits, dots, self._problem)
        self._kernel((self.plan.blocks,), self.plan.block, arguments, shared_mem=self.plan.shared_bytes)
        return output


class PreparedPool:
    """A pool on the GPU, for inputs of one size."""

    def __init__(self, plan: PoolPlan) -> None:
        self.plan = plan
        self._kernel = _compiled(pool_instance(plan), POOL_REGISTERS)
        self._problem = _struct(pool_problem(plan))

    def __call__(self, words: Any, output: Any) -> Any:
        """As `Prepared`: starts the kernel and returns at once."""
        arguments = (words, output, np.int32(self.plan.words), self._problem)
        self._kernel((self.plan.blocks,), (POOL_THREADS, 1, 1), arguments, shared_mem=0)
        return output


class PreparedNetwork:
    """A whole network on the GPU, for inputs of one size: weights, maps between layers and kernels are there.

    A call uploads the input, launches a graph with one kernel a layer, and downloads the last map. Nothing is copied
    between layers, and the processor waits once, for the last map.

    Parameters
    ----------
    network : PackedNetwork
    shape : (N, ceil(C/B), H, W)
        Of the inputs.
    kernel : str, optional
        Of the convolutions; by default as `best_plan` has it.

    Raises
    ------
    GpuError
        If there is no GPU, CuPy or NVRTC.
    ValueError
        If the GPU can't run a layer's plan.
    """

    def __init__(self, network: PackedNetwork, shape: tuple[int, ...], kernel: str | None = None) -> None:
        cupy = _cupy()
        plans = network.plans(shape, partial(best_plan, kernel=kernel))
        self.network = network
        self.shape = tuple(shape)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        with self._stream:
            self._steps = [PreparedPool(plan) if isinstance(plan, PoolPlan) else Prepared(plan) for plan in plans]
            self._input = cupy.empty(shape, network.dtype)
            self._maps = [cupy.empty(plan.output_shape, plan.output_dtype) for plan in plans]
            self._stream.synchronize()
            self._stream.begin_capture()
            for step, source, output in zip(self._steps, [self._input, *self._maps], self._maps):
                step(source, output)
            self._launches = self._stream.end_capture()

    def __call__(self, words: Array) -> Array:
        """The network's words or dots for (N, ceil(C/B), H, W) words; ValueError if these have another shape."""
        self.network.check_input(words)
        if words.shape != self.shape:
            raise ValueError(f"network: prepared for an input of shape {self.shape}, got {words.shape}")
        with self._stream:
            self._input.set(np.ascontiguousarray(words))
            self._launches.launch(self._stream)
            result: Array = self._maps[-1].get()
        return result


def run_network(network: PackedNetwork, words: Array, kernel: str | None = None) -> Array:
    """A whole network on the current GPU: words, or the dots of the last layer; errors as of `PreparedNetwork`."""
    network.check_input(words)
    return PreparedNetwork(network, words.shape, kernel)(words)


def _struct(fields: dict[str, int]) -> Array:
    """The source's ``struct Problem`` as a scalar that CuPy passes by value."""
    return np.array([tuple(fields.values())], np.dtype([(name, np.int32) for name in fields]))


def run(layer: PackedConv, words: Array, plan: TilePlan | None = None) -> Array:
    """Compute a convolution on the current GPU, as `golden.kernels.tiled.reference.run` does; by default by the GPU's
    `best_plan`.

    Raises
    ------
    GpuError
        If there is no GPU, CuPy or NVRTC.
    ValueError
        If the GPU can't run the plan.
    """
    layer.check_input(words)
    images, _, height, width = words.shape
    plan = plan or best_plan(layer, (images, height, width))
    plan.check(layer, words)
    cupy = _cupy()
    output: Array = cupy.asnumpy(Prepared(plan)(cupy.asarray(np.ascontiguousarray(words))))
    return output


def compiler_options(registers: int) -> tuple[str, ...]:
    """Options of NVRTC beside the architecture; ``registers`` is how many a thread may have."""
    return ("-std=c++17", f"--maxrregcount={registers}")


@lru_cache(maxsize=64)
def _compiled(name: str, registers: int) -> Any:
    options = compiler_options(registers)
    module = _cupy().RawModule(code=SOURCE.read_text(), options=options, name_expressions=(name,))
    function = module.get_function(name)
    function.max_dynamic_shared_size_bytes = _largest_shared_bytes()  # else it is 48 KiB
    return function


def _largest_shared_bytes() -> int:
    """Shared memory that a block may ask for on the current GPU."""
    return int(_cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


def nvrtc() -> Any:
    """CuPy's binding of NVRTC, which needs no GPU. GpuError where CuPy or NVRTC is missing.

    CuPy 13 looks for NVRTC where the system keeps its libraries only; pip puts it among Python's packages.
    """
    binding = _imported().cuda.nvrtc
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        load_nvidia_dynamic_lib("nvrtc")
    except (ImportError, RuntimeError):
        pass  # CuPy may find another one, or says that it does not
    try:
        binding.getVersion()
    except RuntimeError as e:
        raise GpuError(f"gpu: NVRTC is missing: {str(e).splitlines()[0]}") from None
    return binding


def _cupy() -> ModuleType:
    """CuPy. GpuError where it, CUDA, a device or NVRTC is missing."""
    cupy = _imported()
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as e:
        raise GpuError(f"gpu: CUDA finds no device: {str(e).splitlines()[0]}") from None
    if not count:
        raise GpuError("gpu: CUDA finds no device")
    nvrtc()
    return cupy


def _imported() -> ModuleType:
    """CuPy. GpuError where it is missing."""
    try:
        import cupy
    except ImportError:
        raise GpuError(f"gpu: CuPy is missing: {pip_install('gpu')}") from None
    module: ModuleType = cupy
    return module
