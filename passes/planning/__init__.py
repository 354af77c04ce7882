"""Buffer planning: where each value of a program lives.

It works on a small model of the program, without MLIR: `program` is the model, `order` moves
readers before in-place updates, `liveness` says when each value is needed, `coalesce` decides which
values share storage, `offsets` packs what is left into one arena and `plan` spells out the result:
calls, copies and control flow on storage slots. `from_mlir` and `to_mlir` translate for the pass
`stablehlo-plan-buffers`.
"""
