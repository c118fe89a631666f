"""Memories of an NPU that packets fill: a file for each part that has some.

    memory.py         a memory: name, id, rows, and the fields of a row
    memory_map.py     all memories of an NPU, by id
    window_former.py  the window former's fields of the network's row
    sequencer.py      which taps a layer reads; fields that the pool unit's sequencer has as well
    line_former.py    what line formers put side by side, in front of the array and of the pool unit
    array.py          kernels
    results.py        thresholds or scales, additions
    pool_unit.py      the pool unit's sequencer, kernels and scales
    ports.py          chunks, the binariser's thresholds; where maps come from and go to
    loader.py         the one row that describes the network

The hardware makes its memories by this map, the manifest carries it, the compiler fills rows by it, and the driver
checks packets against it (docs/reference/device.md, "Memories").
"""
