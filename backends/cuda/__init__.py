"""The CUDA backend: kernels as PTX and cubins, made without a GPU."""
