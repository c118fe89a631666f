"""The pool unit: maximum, average or depthwise convolution over a window; and the pool results behind it."""
