"""What the process that partitions runs, without lamina: `python -m shardy`, with this folder's parent in the path."""
