"""Generics whose rows are too short for vectors, written over vectors that span rows or matrices."""
