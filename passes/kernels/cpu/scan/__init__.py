"""Scans along an axis, and recurrences h[i] = a[i] h[i - 1] + b[i], as LLVM IR."""
