"""Sorts: by merging, with any comparator, and by the bits of keys."""
