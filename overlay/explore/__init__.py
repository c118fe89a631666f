"""Folding search: NPUs, how they are joined, mapping, lanes and memories for a network, within a budget or for a rate.

    network --demands.py--> layers --one_npu.py--> NPUs --chain.py, ring.py--> candidate.py --search.py--> front
                                          ^                                      |     ^--variations.py--'
    parts.py, stores.py, memory.py --estimate.py--> area                         `--flow model--> cycles, latency

The area model's coefficients lie in coefficients.json; `python -m tests.area_fit.refit` fits them to Yosys.
"""
