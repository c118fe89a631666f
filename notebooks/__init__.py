"""Jupyter notebooks; ``pynq get-notebooks`` copies them from here (entry point pynq.notebooks)."""
