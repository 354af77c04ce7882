"""Passes over linalg ops, in folders by what they are for:

elementwise  which generic computes what, on tensors and buffers
vectors      rows too short for vectors, written over vectors that span rows
schedule     what is done to generics before `schedule-generics` chooses their loops

`analysis` reads a generic into Python. These are for CPUs, but for `elementwise` and `analysis`; matrix products
and attention are in `passes/kernels`.
"""
