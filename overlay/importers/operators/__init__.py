"""Operators: one function each, which rewrites a node into operations. A file a subject, a registry for all of them."""

from . import closing, elementwise, integers, layout, linear, pooling, quantise, tflite
from .registry import OPERATORS

__all__ = ["OPERATORS", "closing", "elementwise", "integers", "layout", "linear", "pooling", "quantise", "tflite"]
