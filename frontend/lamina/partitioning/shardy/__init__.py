"""What the process that partitions runs, without lamina's frontend and with jaxlib's MLIR."""

BEGUN = "begins "
"""What lines begin with, on its standard error, by which it says what it does."""
