"""Rows of an NPU's memories, a file for each part of the NPU that fills some.

    window_former.py  which windows the window former makes of a frame
    sequencer.py      which taps a layer reads, for the array and for the pool unit
    line_former.py    what line formers put side by side, in front of the array and of the pool unit
    array.py          the kernel memory
    results.py        thresholds, scales, additions
    pool_unit.py      the pool unit, with its own kernels and scales
    stores.py         which maps go to the skip store
    ports.py          inlets, chunks, outlets
    loader.py         what the loader must know of the network

`memories.py` puts the rows of all layers one behind the other.
"""
