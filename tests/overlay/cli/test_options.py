"""Types of options."""

import click
import pytest

from bitloom.overlay.cli.options import POSITIVE


@pytest.mark.parametrize("text", ["0.25", "1", "1e-9", "1000"])
def test_a_number_above_0(text: str) -> None:
    assert POSITIVE.convert(text, None, None) == float(text)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan"])
def test_no_number_above_0(text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"^must be a number above 0, got {text}$"):
        POSITIVE.convert(text, None, None)
