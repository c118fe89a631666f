"""The campaigns of ``bitloom fuzz``, a class and a module each."""
