"""docs/explanation/discrete-training.md tells of each setting what is discrete and what its training takes."""

import pytest

from bitloom.golden.discrete.cost import training_cost
from bitloom.golden.discrete.setting import SETTINGS

from .blocks import ROOT

TEXT = (ROOT / "docs" / "explanation" / "discrete-training.md").read_text(encoding="utf-8")
TENSORS = ("inputs", "weights", "errors", "derivatives", "weight_gradients", "memory", "norm")
"""In the order of the table's columns."""


def table(title: str) -> dict[str, list[str]]:
    """Cells of the table of a section by setting."""
    section = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {name: cells for name, *cells in rows[2:]}


@pytest.mark.parametrize("title", ["What is discrete", "What training takes"])
def test_all_settings_are_told_of(title):
    assert list(table(title)) == list(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_discrete(name):
    kinds = SETTINGS[name].kinds()
    assert table("What is discrete")[name] == [kinds[tensor] for tensor in TENSORS]
    assert set(kinds) == set(TENSORS)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_training_takes(name):
    setting = SETTINGS[name]
    cost = training_cost(64, setting.specs(64, (256, 256), 10), setting.rule, setting.batch)
    products = [f"{count:,.0f}" for count in (cost.multiplications, cost.shifts, cost.look_ups)]
    memory = [f"{cost.parameter_bits:.1f}", f"{cost.batch_bits / 8192:,.0f}"]
    assert table("What training takes")[name] == [*memory, *products]
