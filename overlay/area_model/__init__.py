"""Area of a design by formula, without generating it: a file for each part of an NPU.

    design ---sequencer.py, array.py, ... loader.py--> blocks --coefficients.json--+--> LUT, flip-flops, DSP, RAM
                  `---------------------------------> memories --memory.py---------'

`blocks.py` gathers blocks and memories of a design, `estimate.py` sums them up. Each file of a part says of which
blocks the part is made, with the sizes by which their area goes, and which memories it has. `python -m
tests.area_fit.refit` fits the coefficients to Yosys.
"""
