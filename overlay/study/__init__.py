"""Measurements and comparisons."""
