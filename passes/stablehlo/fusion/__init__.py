"""Which ops become one kernel. What flows in is one function of StableHLO; what flows out calls private functions,
each a kernel, with the reason for where it ends written on it."""
