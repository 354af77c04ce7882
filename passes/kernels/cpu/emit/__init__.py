"""What kernels are written with that are LLVM IR from the start: loops over vectors, tasks, numbers in lanes."""
