"""How files from outside are read: bytes, JSON, npy and IDX arrays and zip archives, each in one way.

Every reader checks size, type and shape before it takes memory, runs nothing that a file holds, and raises ValueError
with one line. What is legal for each kind of file stands in docs/reference/files.md.
"""
