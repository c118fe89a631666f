"""The machine that trains on discrete data: instructions, and an interpreter of master, slaves and tree (spec C)."""
