"""Scatters, and those whose places windows select."""
