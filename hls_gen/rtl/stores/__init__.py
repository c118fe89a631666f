"""Stores of an NPU: where maps wait."""
