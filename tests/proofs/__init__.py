"""Proofs of generated modules by Yosys and the solver Z3: docs/reference/proofs.md says what is proved.

rules/*.sv      what a module keeps to, as assertions in SystemVerilog
catalogue/      which module, of which sizes, keeps to which rules, and breaks that its proof must refuse
engine.py       how a proof is carried out
__main__.py     python -m tests.proofs: carry out proofs and print a table of them
"""
