"""Passes that leave StableHLO: control flow becomes scf, and ops without a form in linalg become loops; the fused
program gets its buffers."""
