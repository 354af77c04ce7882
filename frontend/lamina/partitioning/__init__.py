"""Programs with shardings, made the program that each device runs: by Shardy, which JAX brings along.

    found = partition(code, 4, version)
    found.code                     # StableHLO of one device, which says the collectives
    found.inputs, found.outputs    # a Sharding each: which part of the array a device has

Shardy is in jaxlib's own MLIR (0.12 and later). It ends the process where it meets what it does not
know, so it runs in a process of its own, which is started with the first program and kept: the folder shardy.
"""

from __future__ import annotations

from lamina.partitioning.helper import Answer as Answer
from lamina.partitioning.helper import PartitionError as PartitionError
from lamina.partitioning.helper import Question as Question
from lamina.partitioning.helper import Sharding as Sharding
from lamina.partitioning.helper import begin as begin
from lamina.partitioning.helper import missing as missing
from lamina.partitioning.helper import partition as partition
from lamina.partitioning.helper import version as version

__all__ = ["Answer", "PartitionError", "Question", "Sharding", "begin", "missing", "partition", "version"]
