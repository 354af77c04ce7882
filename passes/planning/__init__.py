"""Buffer planning without MLIR: a small model of a program, and where each of its values lives.

`program` is the model, `order` moves readers before in-place updates, `liveness` says when each
value is needed, `coalesce` decides which values share storage, `offsets` packs what is left into
one arena and `steps` spells out the result: calls, copies and control flow on storage slots.
`passes/stablehlo/plan_buffers.py` translates between this model and MLIR.
"""
