"""What every kernel is made with: shells, scratch, thread numbers, shuffles, and the way down to NVVM."""
