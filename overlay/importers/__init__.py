"""Networks from outside become models: the passes, in the order in which a file goes through them.

    read        file --> SourceGraph             onnx_file.py, tflite_file.py, scores.py: the file's own words
    canonical   SourceGraph --> OperationGraph   constants.py, operators/: a few kinds of operations, in fractions
    quantise    OperationGraph --> SectionGraph  rules.py, branches.py, walk.py: cut at quantisers
    choose      SectionGraph --> EngineChoice    held.py: engines, and which integers maps hold
    emit        both --> Emitted                 boundaries.py, requantise_fit.py, pair_fit.py: the model

All of these are graphs; a chain of layers is a graph in which each map has one reader. Each checks what stands in it:
`SourceGraph.check`, `OperationGraph.check`, and what `Network` and `Model` check themselves. `verify` then computes
each rewriting again, on random and on extreme values, and names the first one that does not agree with what it was
made of.

A network from outside is a function of real numbers. Its meaning here is exact: parameters are the rational numbers
that their floating-point values are, and nothing is rounded but where the file says so. So it can be shown, for every
channel and every sum that can occur, that integers give the same result; see `bitloom.overlay.importers.boundaries`.
"""
