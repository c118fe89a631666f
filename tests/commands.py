"""Calls of `bitloom`'s commands in this process."""

from typing import Any

from click.testing import CliRunner, Result

from bitloom.overlay.cli.group import bitloom


def call(*words: object, **more: Any) -> Result:
    """The result of a command; ``more`` as for ``CliRunner.invoke``."""
    return CliRunner().invoke(bitloom, [str(word) for word in words], **more)


def error(*words: object) -> str:
    """The message of a command that ends with status 1."""
    result = call(*words)
    assert result.exit_code == 1, result.output
    return str(result.exception)
