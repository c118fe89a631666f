"""The list of breaks (tests/mutants.py) fits the sources; in the slow tier every one of them is caught."""

from pathlib import Path

import pytest

from tests import mutants
from tests.mutants import CAUGHT, MUTANTS, Mutant
from tests.paths import ROOT

ROOMS = ("golden", "hls_gen/compiler", "hls_gen/design", "hls_gen/rtl", "hls_gen/check", "driver", "overlay")


def mistake(mutant: Mutant) -> str:
    """What is wrong with an entry of the list: a changed source, a test that is gone; nothing where it is right."""
    files = mutant.tests[: mutant.tests.index("-k")] if "-k" in mutant.tests else mutant.tests
    missing = [file for file in files if not (ROOT / "tests" / file).exists()]
    try:
        compile(mutant.broken(), mutant.file, "exec")
    except (OSError, ValueError, SyntaxError) as e:
        return str(e)
    return f"{mutant.name}: no such test: {', '.join(missing)}" if missing else ""


def test_every_old_text_is_there_once_and_the_tests_are() -> None:
    wrong = [text for text in map(mistake, MUTANTS) if text]
    assert not wrong, "change these entries of tests/mutants.py as the sources have changed:\n" + "\n".join(wrong)


def test_every_room_is_broken() -> None:
    assert len(MUTANTS) >= 60
    assert all(any(mutant.file.startswith(f"{room}/") for mutant in MUTANTS) for room in ROOMS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_text_that_is_not_there_once_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for old, count in (("no such text", 0), ("import", 2)):
        found = rf"^golden/flatten\.py: the old text must stand there once, found [{count}-9]"
        with pytest.raises(ValueError, match=found):
            Mutant("golden/flatten.py", old, "", ()).broken()
    assert mutants.main(["--list", "--only", "golden/window.py"]) == 0
    assert capsys.readouterr().out.count("golden/window.py: ") == len(mutants.chosen(["golden/window.py"])) > 0


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mutants.copied(tmp_path_factory.mktemp("mutants"))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_mutant_is_caught(mutant: Mutant, tree: Path) -> None:
    assert mutants.verdict(mutant, tree) == CAUGHT
