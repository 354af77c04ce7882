"""Passes that write ops in terms of fewer ops: composites and custom calls taken back, numeric formats
defined, random bits and transforms expanded. What flows out holds only ops that the later passes know."""
