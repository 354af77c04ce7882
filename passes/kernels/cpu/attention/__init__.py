"""Kernels of attention and its gradient for CPUs: blocks of scores that stay in cache."""
