"""The marker ``sample``: both tiers together run all cases of a test, the default one as many as the marker says."""

from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems


class Item(SimpleNamespace):
    """A case as pytest hands it over: its name and its markers."""

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)


def slow(names: list[str]) -> set[str]:
    """Which cases of ``test`` become slow; another test with the marker and one without it lie between them."""
    items = [Item(nodeid=f"a.py::test[{name}]", marks=[pytest.mark.sample(3).mark]) for name in names]
    others = [Item(nodeid=f"a.py::other[{k}]", marks=[pytest.mark.sample(9).mark] if k else []) for k in range(9)]
    pytest_collection_modifyitems([*items[::2], *others, *items[1::2]])
    assert not any(item.get_closest_marker("slow") for item in others)
    return {item.nodeid for item in items if item.get_closest_marker("slow")}


def test_all_cases_but_the_sample_are_slow():
    names = [f"{k}" for k in range(20)]
    assert len(slow(names)) == 17
    assert slow(names) == slow(names[::-1])
    assert slow(names[:3]) == set()


def test_cases_that_are_slow_anyway_are_none_of_the_sample():
    marks = [pytest.mark.sample(2).mark]
    items = [Item(nodeid=f"a.py::test[{k}]", marks=[*marks, *[pytest.mark.slow.mark] * (k < 8)]) for k in range(10)]
    pytest_collection_modifyitems(items)
    assert [item.get_closest_marker("slow") is None for item in items] == [False] * 8 + [True] * 2
