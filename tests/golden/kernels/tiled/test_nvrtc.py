"""The CUDA source passes NVRTC as gpu.py calls it, where CuPy and NVRTC are (extra gpu); no GPU is needed."""

import pytest

from bitloom.golden.kernels.tiled import gpu, kernel

from .cases import plans


@pytest.fixture(scope="module")
def nvrtc():
    try:
        return gpu.nvrtc()
    except gpu.GpuError as e:
        pytest.skip(str(e))


def compiled(nvrtc, how, architecture):
    """The machine code of a plan's kernel. RuntimeError where NVRTC refuses it; its log is printed."""
    program = nvrtc.createProgram(kernel.SOURCE.read_text(), kernel.SOURCE.name, [], [])
    try:
        name = kernel.instance(how)
        nvrtc.addNameExpression(program, name)
        options = (*gpu.compiler_options(how.register_limit), f"-arch=sm_{architecture}")
        try:
            nvrtc.compileProgram(program, options)
        finally:
            print(nvrtc.getProgramLog(program))
        code = nvrtc.getCUBIN(program)
        assert nvrtc.getLoweredName(program, name).encode() in code
        return code
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize(
    ("architecture", "kernels"),
    [(75, ["popc"]), (86, ["popc", "mma-xor", "mma-and"]), (90, ["popc", "mma-and"]), (120, ["popc", "mma-and"])],
)
def test_compiles(nvrtc, architecture, kernels):
    assert architecture in nvrtc.getSupportedArchs(), "this NVRTC is too old or too new for the test"
    for how in plans(kernels, sizes=(2, 3)):
        compiled(nvrtc, how, architecture)


def test_a_mistake_in_the_source_would_be_noticed(nvrtc, tmp_path, monkeypatch, capsys):
    broken = tmp_path / "broken.cu"
    broken.write_text(kernel.SOURCE.read_text().replace("m16n8k256", "m16n8k257"))
    monkeypatch.setattr(kernel, "SOURCE", broken)
    (how,) = plans(["mma-and"], word_bits=[32])
    with pytest.raises(RuntimeError):
        compiled(nvrtc, how, 80)
    assert "m16n8k257" in capsys.readouterr().out
