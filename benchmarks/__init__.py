"""Measurements of lamina beside its peers: `python -m benchmarks --help`."""
