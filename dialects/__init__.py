"""All contact with MLIR: the wheel, contexts, types, constants, op builders, serialisation."""
