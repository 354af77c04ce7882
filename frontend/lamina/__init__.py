"""lamina: a compiler for array programs."""
