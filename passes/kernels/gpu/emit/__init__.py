"""Kernels of generics, mapped to blocks and threads: element-wise work, reductions, softmax-like rows and
transposes."""
