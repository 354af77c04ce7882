"""Passes over linalg ops, in folders by what they are for:

elementwise  which generic computes what, on tensors and buffers
products     matrix products and convolutions as blocks in registers
attention    attention and its gradient as blocks that stay in cache
vectors      rows too short for vectors, written over vectors that span rows
schedule     the loops that every other generic runs as

`analysis` reads a generic into Python. These are for CPUs, but for `elementwise` and `analysis`.
"""
