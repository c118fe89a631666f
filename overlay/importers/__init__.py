"""Networks from outside become models: the passes, in the order in which a file goes through them.

    file --> source graph (onnx_file.py) --> constants folded (constants.py) --> operations (operators/)
         --> sections, cut at quantisers (cut.py) --> engines and encodings chosen (choose.py) --> model (emit.py)

Between two passes stands a specification, which is checked: `SourceGraph.check`, `OperationGraph.check`, and what
`Network` and `Model` check themselves. `verify` then computes each rewriting again, on random and on extreme values,
and names the first one that does not agree with what it was made of.

A network from outside is a function of real numbers. Its meaning here is exact: parameters are the rational numbers
that their floating-point values are, and nothing is rounded but where the file says so. So it can be shown, for every
channel and every sum that can occur, that integers give the same result; see `bitloom.overlay.importers.boundaries`.
"""
