"""What compiling takes, in seconds of a core of some 4 GHz: only whether to start workers depends on it."""

WORKER_START = 0.3
"""Of processor time until a worker has compiled a first kernel and is ready for others."""
PER_OPERATION = 0.5e-3
"""Of a program, for each of its operations before it is known which of them are the same: from 0.3 ms in eight equal
layers to 5 in stencils."""
PER_COST = 9e-6
"""Of a kernel, for each unit of its cost."""
