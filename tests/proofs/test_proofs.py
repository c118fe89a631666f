"""Every proof holds, reaches what its rules speak of and refuses its breaks; the page says what is proved."""

import re
from pathlib import Path

import pytest

from tests.hls_gen.rtl.bench import text_of
from tests.paths import ROOT
from tests.proofs.__main__ import HEAD, row
from tests.proofs.carry_out import fault_of
from tests.proofs.catalogue import PROOFS
from tests.proofs.engine import RULES, Broken, Prepared, Proof

PAGE = ROOT / "docs/reference/proofs.md"


def marked(proof: Proof) -> object:
    return pytest.param(proof, id=proof.name, marks=[] if proof.quick else pytest.mark.slow)


@pytest.mark.sample(2)
@pytest.mark.parametrize("proof", [marked(proof) for proof in PROOFS])
def test_proof(proof: Proof, tmp_path: Path) -> None:
    assert fault_of(proof, tmp_path) == ""


def test_every_break_is_of_text_that_is_there_once() -> None:
    """In all proofs, also those of the slow tier: a changed module shows here first."""
    for proof in PROOFS:
        text = text_of(proof.block())
        assert proof.breaks, proof.name
        assert {broken.old: text.count(broken.old) for broken in proof.breaks} == dict.fromkeys(
            [broken.old for broken in proof.breaks], 1
        ), proof.name


def test_a_break_of_text_that_is_not_there() -> None:
    proof = PROOFS[0]
    with pytest.raises(
        ValueError, match=r"^fifo of 1: the old text must stand there once, found 0 times: no such text$"
    ):
        Prepared(proof, Path(), Broken("no such text", "", ""))


def test_names_are_used_once() -> None:
    assert len({proof.name for proof in PROOFS}) == len(PROOFS)


def contract(rules: str) -> str:
    """Text of a file of rules without the invariants, which stand at its end."""
    return (RULES / rules).read_text().partition("`ifdef INVARIANTS")[0]


def test_every_rule_of_a_contract_has_a_name() -> None:
    """So that what a break breaks can be told, and the page can say it."""
    for path in sorted(RULES.glob("*.sv")):
        said = contract(path.name)
        assert len(re.findall(r"\b(assert|cover) \(", said)) == len(re.findall(r"\w+: (assert|cover) \(", said)), path


def test_every_file_of_rules_is_used() -> None:
    assert {f"{proof.rules}.sv" for proof in PROOFS} | {"streams.sv"} == {path.name for path in RULES.glob("*.sv")}


def test_the_page_has_every_proof() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    tables = [line for line in rows if line.count("|") == len(HEAD) + 1]
    assert tables == [f"| {' | '.join(HEAD)} |", *map(row, PROOFS)]


def test_the_page_names_every_rule_and_every_module() -> None:
    page = PAGE.read_text()
    names = {name for path in RULES.glob("*.sv") for name in re.findall(r"(\w+): assert \(", contract(path.name))}
    assert sorted(name for name in names if f"`{name}`" not in page) == []
    assert sorted({proof.source for proof in PROOFS if f"`{proof.source}`" not in page}) == []
    assert sorted({proof.source for proof in PROOFS if not (ROOT / proof.source).is_file()}) == []
    assert [proof.name for proof in PROOFS if proof.bounded and proof.bounded not in page] == []
