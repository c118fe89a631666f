"""From a network and a design to the program that the design runs. Needs numpy alone, so that a board can compile.

Each pass runs once for a network and its NPUs, and hands its result on:

    tail      host_tail.py    model                   --> what the device computes, what the host does behind it
    rewrite   engine_form.py  model                   --> the same, as engines take it
    cut       workloads.py    model, target           --> workloads: cut in front of weighted layers, no arrays
    place     mapping.py      workloads, NPUs         --> the NPU of each workload, copies of maps, and ways of these
    lower     lowering.py     placed workloads        --> lowered layers, with arrays
    schedule  schedule/       lowered layers          --> orders of maps, and tables, in a map order
    plan      plan.py         lowered layers, NPUs    --> planned layers: words, kernel groups, parts of tuples
    needs     needs.py        planned layer           --> rows, words and widths
    fit       sizing.py       needs of all networks   --> NPUs with memories for them
    rows      rows/           planned layers          --> rows of the memories
    program   emit.py         rows, manifest          --> what the driver sends

Only fitting goes round, where parts of tuples or lanes that share weights show in a plan: both change what layers
need. Window formers and stores of steps are known from lowered layers. The flow model (flow/) follows from planned
layers, too.
"""
