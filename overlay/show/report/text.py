"""Numbers as people read them."""

from typing import Any

TIMES = "\N{MULTIPLICATION SIGN}"


def number(value: float) -> str:
    """A number with thousands' commas, and 4 digits where they are needed; after the point at least one."""
    text = f"{value:,.{max(1, 4 - len(str(int(abs(value)))))}f}"
    return text.rstrip("0").rstrip(".")


def numbers() -> Any:
    """The formatter that writes numbers on an axis of matplotlib as people read them."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: number(value))


def percent(share: float) -> str:
    """A share of 1 as per cent."""
    return f"{share:.1%}"
