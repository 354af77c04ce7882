"""Random numbers, bit for bit JAX's."""

import numpy as np

from benchmarks.suite import Workload

MEGA = 1 << 20

WORKLOADS = [
    Workload(f"random.{name} 1M", "random numbers",
             lambda m, name=name: lambda key: getattr(m.random, name)(key, (MEGA,)),
             lambda: (np.array([0, 42], np.uint32),), bar, bytes=4.0 * MEGA)
    for name, bar in (("normal", 4.0), ("uniform", None))
]  # fmt: skip
