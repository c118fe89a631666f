"""Pages on a network from outside: its names are a stranger's, and stay text."""

import re
from html import unescape

import numpy as np
import pytest

from bitloom.overlay.importers.explain import rows, write_explanation
from bitloom.overlay.importers.imported import import_file, import_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph

from .onnx_files import Chain
from .tflite_files import Chain as TfliteChain

markdown = pytest.importorskip("markdown", reason="the extra docs is not installed")
NAMES = (
    "<script>alert(1)</script>",
    "![i](http://a/b.png)",
    "[c](javascript:alert(1))",
    "a|b",
    "a\\|b",
    "a\\",
    "`code`",
)
NAMES += ("*b* _i_ __u__", "&lt;", "<http://a>", "plain_name_1", "~~s~~", "$x$")


def test_names_in_markdown_and_html(tmp_path):
    chain = Chain((2, 4, 4)).quant(0.5, 3).node("Conv", np.ones((3, 2, 3, 3), np.float32))
    for _ in NAMES:
        chain.node("Identity")
    model = chain.model()
    for node, name in zip(model.graph.node[2:], NAMES, strict=True):
        node.name = name
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    paths = write_explanation(import_file(tmp_path / "net.onnx"), [], tmp_path / "net.npz")
    pages = [path.read_text(encoding="utf-8") for path in paths]
    page = markdown.markdown(pages[0], extensions=["tables"])
    assert set(re.findall(r"<[^>]*>", page)) <= {
        f"<{end}{tag}>" for end in ("", "/") for tag in ("h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td")
    }
    for text in (page, pages[1]):
        cells = [unescape(row) for row in re.findall(r"<tr>\s*<td>(.*?)</td>", text)]
        assert cells[2 : 2 + len(NAMES)] == list(NAMES)
    assert "| plain_name_1 | Identity |" in pages[0]


def test_what_the_host_does_stands_at_its_end():
    """DEQUANTIZE makes scores here; it was said to be in front of the accelerator."""
    rng = np.random.default_rng(4)
    chain = TfliteChain((3, 4, 2), kind="FLOAT32").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3))
    chain = chain.dense(rng, 6, (0.02, 3)).operator("DEQUANTIZE", (1, 6), kept="FLOAT32")
    table = rows(import_graph(to_tflite_graph(chain.bytes()), name="chain"))
    on_the_host = [(op, how) for _, op, became, how in table if became == "host"]
    assert on_the_host == [("QUANTIZE", "before the accelerator"), ("DEQUANTIZE", "after the accelerator")]
