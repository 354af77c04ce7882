"""An emulator of GPUs: runs the kernels of a `gpu.module` on NumPy arrays, and checks how threads share."""
