"""How the loops of a kernel run. What flows in is generics on buffers, what flows out is scf on memrefs, in which
memref-vectorize-loops writes the innermost loops over vectors.

`schedule-generics` reads generics into a `Nest` (nest.py, read_generics.py): statements, their extents and what they
touch, without MLIR. A `Schedule` (schedule.py) says in which loops the statements run; primitives change it and refuse
what dependences (dependences.py) forbid. Candidates (candidates.py) are compared by arithmetic (cost.py), neighbours
are fused (fusion.py), and what is chosen is emitted once (emit_loops.py). words.py prints a schedule and reads it
back."""
