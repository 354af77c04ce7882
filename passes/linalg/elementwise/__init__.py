"""Passes on generics on tensors and buffers that change which generic computes what, before loops are chosen."""
