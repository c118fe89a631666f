"""The campaigns of ``bitloom fuzz``, a module each: ``campaign()`` makes it, ``BATCH`` is the size of a task."""
