"""Results of the tree for given inputs, written to files: two trees are compared by the files that they write.

    python -m tests.replay /tmp/before            # on the tree before a change
    python -m tests.replay /tmp/after             # after it
    diff -r /tmp/before /tmp/after

A refactoring leaves every file as it was. The parts, each of which can be replayed alone (``python -m tests.replay
/tmp/before designs networks``):

- ``designs``: Verilog, manifest and programs of the reference designs, and of others with parts that these lack;
- ``networks``: design, program and cycles of seeded random networks on seeded random NPUs, or the refusal;
- ``imports``: the model that comes of each file that can be imported, or the refusal;
- ``explore``: the front of a few searches.
"""
