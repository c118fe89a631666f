"""Folding search: NPUs and their topology, mapping, lanes and memories for a network, within a budget or for a rate.

network --demands.py--> layers --one_npu.py--> NPUs --chain.py, ring.py--> candidate.py --search.py--> front
                                      ^                                      |     ^--variations.py--'
overlay/area_model ----------------> area                                    `--flow model--> cycles, latency
"""
