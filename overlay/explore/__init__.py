"""Folding search: NPUs, mapping, lanes and memories for a network, within a budget or for a rate.

    network --layer_demand.py--> layers --chain.py, by prices--> chains of NPUs --candidate.py--> design, figures
                                      ^                                         ^            `--search.py--> front
    parts.py, stores.py, memory.py --estimate.py--> area                hls_gen.compiler.flow --> cycles, latency

refit.py fits the area model to designs of samples.py, by least_squares.py; its coefficients lie in coefficients.json.
"""
