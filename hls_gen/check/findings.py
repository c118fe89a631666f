"""Broken rules, as the check reports them."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One broken rule."""

    module: str
    """Name of the module."""
    signal: str
    """The signal or instance in it; "" for the module as a whole."""
    rule: str
    """The rule, and what was found instead."""

    def __str__(self) -> str:
        return ": ".join([".".join(part for part in self[:2] if part), self.rule])


class DesignError(ValueError):
    """Generated Verilog breaks rules; the message has a line for each finding.

    Parameters
    ----------
    findings
        Broken rules, one or more.
    """

    def __init__(self, findings: list[Finding]):
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, findings)))
