"""Griffe extension: where a field declares what it means, that sentence is its text in the documentation.

pfp: int = number(8, means="Channels that the pool unit takes in a cycle.")
"""

import ast
from typing import Any

from griffe import Attribute, Docstring, ExprCall, ExprKeyword, Extension


class Means(Extension):
    """Gives fields of parts (hls_gen/design/parts.py) their texts, and shows their defaults alone."""

    def on_attribute_instance(self, *, attr: Attribute, **others: Any) -> None:
        """Look at a field as it is read."""
        call = attr.value
        if attr.docstring or not isinstance(call, ExprCall):
            return
        for argument in call.arguments:
            if isinstance(argument, ExprKeyword) and argument.name == "means":
                attr.docstring = Docstring(ast.literal_eval(str(argument.value)), parent=attr)
                first = call.arguments[0]
                attr.value = None if isinstance(first, ExprKeyword) else first
