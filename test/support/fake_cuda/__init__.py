"""NVIDIA's driver and libraries made of Python, on this host's memory: what the CUDA runtime calls, without a GPU."""
