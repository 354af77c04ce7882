"""Passes over StableHLO, in folders by what they are for, in about the order of a compilation:

legalize      ops are written in terms of fewer ops
canonicalize  local rules, folding, common subexpressions, dead code
collectives   what devices say to each other
attention     attention and its gradient are set apart as kernels
algebra       the same by other arithmetic
piecewise     concatenations, pads and updates are computed part by part
loops         what loops of the program need not do in each step
fusion        which ops become one kernel
lower         out of StableHLO: scf, linalg, buffers

`analysis` holds what they all ask of ops. The order itself is in `backends/pipelines.py`.
"""
