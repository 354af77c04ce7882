"""Kernel writers: what loops over generics don't describe well, or not fast enough. What flows in is one op, or one
generic with what is fused around it; what flows out is the code of a kernel.

Both targets are side by side and have the same names: gemm, attention, factorisations, fft, scan, and `emit`, what
each of them writes with. A pass below `cpu` or `gpu` is named after that folder: `cpu-write-attention`.
"""
