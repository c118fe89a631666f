"""The campaigns of ``bitloom fuzz``, a class and a module each; ``BATCH`` is the size of a task."""
