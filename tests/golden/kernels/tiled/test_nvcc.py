"""The CUDA source passes NVIDIA's compiler for all architectures, with no more registers than the planner counts."""

import re
import shutil
import subprocess

import pytest

from bitloom.golden.kernels.tiled import kernel
from bitloom.golden.kernels.tiled.gpu import POOL_REGISTERS
from bitloom.golden.kernels.tiled.plan import KERNELS

from . import ptx
from .cases import plans

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, of the CUDA toolkit, on the PATH")

DIVISION = r"\b(div|rem)\.[su]32"
PARAMETERS = "const {word}*, const {word}*, const int*, unsigned*, int*, Problem"


def compiled(folder, architecture, plans):
    """Registers of the plans' kernels, in their order, as ptxas reports them; no register is spilled."""
    source = instances(folder, plans)
    options = ["-std=c++17", f"-arch=sm_{architecture}", "-cubin", "-Xptxas", "-v", "-Werror", "all-warnings"]
    command = ["nvcc", *options, str(source), "-o", str(folder / "out.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"[1-9]\d* bytes spill", done.stderr), done.stderr
    entries = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", done.stderr, re.DOTALL)
    assert len(entries) == len(plans)
    return [next(int(count) for name, count in entries if mangled(how) in name) for how in plans]


def instances(folder, plans):
    """A source file with the plans' kernels."""
    lines = [
        f"template __global__ void {kernel.instance(how)}"
        f"({PARAMETERS.format(word={32: 'unsigned', 64: 'unsigned long long'}[how.layer.word_bits])});"
        for how in plans
    ]
    source = folder / "instances.cu"
    source.write_text("\n".join([f'#include "{kernel.SOURCE}"', *lines]))
    return source


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["xor", "and"])
def test_a_matrix_product_is_of_the_form_that_its_name_says(tmp_path, form):
    """Under fibers the form is an argument; on a GPU it stands in the text of an instruction."""
    source = instances(tmp_path, plans([f"mma-{form}"]))
    out = tmp_path / "out.ptx"
    subprocess.run(["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", str(source), "-o", str(out)], check=True)
    matches = re.findall(r"mma\.sync\.aligned\.m16n8k256\.row\.col\.s32\.b1\.b1\.s32\.(\w+)\.popc", out.read_text())
    assert set(matches) == {form}


def assembly(folder, how, architecture=80):
    """The PTX of a plan's kernel."""
    source = instances(folder, [how])
    out = folder / "out.ptx"
    subprocess.run(["nvcc", "-std=c++17", f"-arch=sm_{architecture}", "-ptx", str(source), "-o", str(out)], check=True)
    return out.read_text()


def test_what_is_in_a_loop(tmp_path):
    """The counting itself: a division in a loop, and one in front of it."""
    source, out = tmp_path / "loop.cu", tmp_path / "loop.ptx"
    source.write_text(
        "__global__ void k(int* x, int a, int b) {\n"
        "    a = a / b;\n"
        "#pragma unroll 1\n"
        "    for (int i = 0; i < a; i++) x[i] = x[i] % b;\n}\n"
    )
    subprocess.run(["nvcc", "-arch=sm_80", "-ptx", str(source), "-o", str(out)], check=True)
    text = out.read_text()
    assert ptx.count(DIVISION, text.splitlines()) == 2
    assert ptx.count(DIVISION, ptx.in_loops(text)) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("architecture", [75, 120])
@pytest.mark.parametrize("word", kernel.WORDS.values())
def test_the_pool_compiles(tmp_path, word, architecture):
    """With no more registers than gpu.py lets it have, and no division in its loop."""
    source, out = tmp_path / "pool.cu", tmp_path / "pool.ptx"
    instance = f"template __global__ void binary_pool<{word}>(const {word}*, {word}*, int, Problem);"
    source.write_text(f'#include "{kernel.SOURCE}"\n{instance}\n')
    command = ["nvcc", "-std=c++17", f"-arch=sm_{architecture}", "-Werror", "all-warnings", str(source), "-o"]
    subprocess.run([*command, str(out), "-ptx"], check=True)
    assert ptx.count(DIVISION, ptx.in_loops(out.read_text())) == 0
    options = [*command, str(tmp_path / "pool.cubin"), "-cubin", "-Xptxas", "-v"]
    done = subprocess.run(options, check=True, capture_output=True, text=True)
    (registers,) = re.findall(r"Used (\d+) registers", done.stderr)
    assert int(registers) <= POOL_REGISTERS


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_no_division_is_in_a_loop(tmp_path, name, size):
    """Of kernel sizes that the compiler knows (3) and doesn't know (2): addresses go on by addition."""
    (how,) = plans([name], word_bits=[32], sizes=[size])
    text = assembly(tmp_path, how)
    assert ptx.count(DIVISION, ptx.in_loops(text)) == 0 < ptx.count(DIVISION, text.splitlines())


@pytest.mark.slow
def test_the_product_with_xor_counts_no_input(tmp_path):
    """With AND the ones of four pieces are counted beside four products, and summed over lanes in the end."""
    for name, counted, shuffles in (("mma-xor", 0, 0), ("mma-and", 1, 4)):
        text = assembly(tmp_path, *plans([name], word_bits=[32]))
        body = ptx.innermost(text, r"\bmma\.")
        assert ptx.count(r"\bpopc\.b32", body) == counted * ptx.count(r"\bmma\.", body)
        assert ptx.count(r"\bshfl", text.splitlines()) == shuffles


@pytest.mark.slow
def test_weights_are_read_once_for_all_chunks(tmp_path):
    """A patch of 8 x 8 has 4 chunks: four times the products, but not four times the reads of shared memory."""
    reads = {}
    for patch in ((4, 4), (8, 8)):
        body = ptx.innermost(assembly(tmp_path, *plans(["mma-xor"], [patch], word_bits=[32])), r"\bmma\.")
        steps = ptx.count(r"\bmma\.", body) / (4 * patch[0] * patch[1] / 16)  # the compiler may unroll the loop
        reads[patch] = ptx.count(r"ld\.shared", body) / steps
    assert reads == {(4, 4): 2 + 8 + 4, (8, 8): 2 + 8 + 4 * 4}  # offsets, weights, windows


@pytest.mark.sample(1)
@pytest.mark.parametrize(("architecture", "name"), [(75, "popc"), (80, "popc"), (90, "mma-and")])
def test_copies_are_asynchronous_where_the_gpu_can(tmp_path, architecture, name):
    text = assembly(tmp_path, *plans([name], word_bits=[64]), architecture)
    copies = re.findall(r"cp\.async\.ca\.shared\.global \[%r\w+\], \[%rd\w+\], 8;", text)
    assert bool(copies) == (architecture >= 80)
    assert ("cp.async.wait_group 1;" in text) == (architecture >= 80)


def mangled(how):
    """The part of an instance's symbol that tells it from the others."""
    name, _, template = kernel.instance(how)[:-1].partition("<")
    word, *numbers = template.split(", ")
    letters = {"unsigned int": "j", "unsigned long long": "y"}[word]
    for number in numbers:
        letters += f"L{'b' if number in ('true', 'false') else 'i'}{ {'true': 1, 'false': 0}.get(number, number) }E"
    return f"{name}I{letters}E"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("architecture", "kernels", "word_bits"), [(75, ["popc"], [32]), (90, ["mma-and"], [64])], ids=["sm_75", "sm_90"]
)
def test_compiles(tmp_path, architecture, kernels, word_bits):
    wanted = plans(kernels, word_bits=word_bits)
    for how, registers in zip(wanted, compiled(tmp_path, architecture, wanted)):
        assert how.layer.word_bits // 4 < registers <= how.thread_registers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "patches"),
    [*((number, ((1, 1), (4, 4))) for number in (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)), (80, ((8, 8),))],
)
def test_compiles_for_every_architecture(tmp_path, architecture, patches):
    kernels = ["popc", *(["mma-and"] if architecture >= 80 else []), *(["mma-xor"] if 80 <= architecture < 90 else [])]
    wanted = plans(kernels, patches=patches, sizes=(3,) if patches == ((8, 8),) else (2, 3))
    for how, registers in zip(wanted, compiled(tmp_path, architecture, wanted)):
        assert registers <= how.thread_registers, (kernel.instance(how), registers)


@pytest.mark.slow
def test_a_mistake_in_the_source_would_be_noticed(tmp_path, monkeypatch):
    broken = tmp_path / "broken.cu"
    broken.write_text(kernel.SOURCE.read_text().replace("m16n8k256", "m16n8k257"))
    monkeypatch.setattr(kernel, "SOURCE", broken)
    with pytest.raises(AssertionError, match="m16n8k257"):
        compiled(tmp_path, 80, plans(["mma-and"], word_bits=[32]))
