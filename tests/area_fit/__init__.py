"""Fits the area model to Yosys: ``python -m tests.area_fit.refit`` writes overlay/area_model/coefficients.json.

Designs of samples.py are synthesised, whole or some of their blocks (blocks.py), and least_squares.py fits coefficients
to what they take.
"""
