"""Kernels of attention and its gradient: by threads, by `mma.sync` and by `wgmma`."""
