"""The pool unit: maximum or average over a window."""
