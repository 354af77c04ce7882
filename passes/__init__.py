"""Passes: each file under `<level>/` is one pass over a module, named by its path."""
