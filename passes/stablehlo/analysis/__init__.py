"""What passes over StableHLO ask of ops before they change anything: facts, ranges, keys, and readers of
shapes that an op may have. Nothing here is a pass; every other folder reads it."""
