"""Every pipeline, on one page: what happens to a program, in order.

A pipeline is a tuple of pass names, each with its options in braces, our own and upstream's alike.
"""

from __future__ import annotations

from lamina.passes.framework.machine import GPU_LAUNCH_NS

# A module as it comes from the frontend or from outside -> one function, in plain StableHLO.
STABLEHLO_INPUT = (
    "stablehlo-choose-forms",
    "stablehlo-adopt-composites",
    "stablehlo-expand-lanes",
    "func.func(stablehlo-legalize-composite-to-call)",
    "inline{default-pipeline=}",  # what it would simplify on the way is simplified below, once
    "symbol-dce",
)

# What only some programs need first: done where the module's text matches the pattern before it, or
# one of several. Patterns begin with a few letters that are the same, which is quick to look for.
STABLEHLO_PREPARE = (
    (r"!quant\.", "stablehlo-define-quantized"),
    (r"stablehlo\.(get_)?tuple", "stablehlo-forward-tuples"),
    (r"stablehlo\.custom_call @lapack_", "stablehlo-adopt-lapack"),
    (r"stablehlo\.custom_call @ApproxTopK", "stablehlo-expand-approx-top-k"),
    (r"stablehlo\.(unary_einsum|dot|broadcast)\b", "func.func(stablehlo-legalize-deprecated-ops)"),
    (r"stablehlo\.(unary_)?einsum", "stablehlo-legalize-ops{only=einsum}"),
    # What several devices, or effects in order, are where there is one device and no effect.
    (r"!stablehlo\.token", "stablehlo-drop-tokens"),
    (
        r"stablehlo\.(all_|reduce_scatter|collective_|partition_id|replica_id|cross-replica"
        r"|custom_call @(Sharding|SPMD|annotate_))",
        "stablehlo-expand-collectives",
    ),
    (r"stablehlo\.all_reduce", "stablehlo-scatter-reductions,stablehlo-merge-reductions"),
    # Devices exchange what is contiguous; the layout around it is a matter of transposes.
    (
        r"stablehlo\.(all_|reduce_scatter|collective_|partition_id|replica_id)",
        "stablehlo-lay-out-collectives",
    ),
    (r"stablehlo\.(all_reduce|reduce_scatter)", "stablehlo-legalize-reductions"),
    # These become ops that fuse and that libraries do.
    (r"stablehlo\.rng ", "stablehlo-expand-rng"),
    (r"stablehlo\.fft", "stablehlo-expand-fft{largest-prime=383 real=true}"),
    (r"stablehlo\.batch_norm", "stablehlo-legalize-ops{only=normalization}"),
    # Sizes that the arguments' sizes decide become known, and ops on unknown sizes plain ones.
    (
        (r"\?x", r"stablehlo\.(dynamic_(?!slice|update_slice)|real_dynamic|get_dimension_size)"),
        "stablehlo-decide-shape-assertions{leave-open=true},"  # else refining says it, worse
        "stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism),"
        "stablehlo-decide-shape-assertions",
    ),
)

# The same program, smaller: nothing here knows what will run it.
STABLEHLO_OPTIMIZE = (
    "stablehlo-simplify{fold=true}",
    "stablehlo-take-permutations",
    "stablehlo-unroll-short-loops",
    "stablehlo-cse",
    "stablehlo-dce",
    "stablehlo-check-supported",  # late: what dead code could not do does not matter
)

# Ops -> kernels, called from @main. A view between two ops would cut a kernel in two.
STABLEHLO_FUSE = (
    "stablehlo-separate-lanes",  # before anything knows the shapes of all lanes
    "stablehlo-outline-attention-gradient{least-scores=262144}",  # what it leaves of attention is nobody else's
    "stablehlo-outline-attention{whole=16 least-scores=65536}",  # before others take its parts
    "stablehlo-chunk-attention",
    "stablehlo-reduce-windows",
    "stablehlo-reduce-parts",
    "stablehlo-reduce-in-chunks",
    "stablehlo-reduce-further",  # after what walks a whole array in chunks
    "stablehlo-find-extremes-first",
    "stablehlo-keep-products-small",
    "stablehlo-multiply-patches",
    "stablehlo-sum-few-products",
    "stablehlo-lay-out-contractions",
    "stablehlo-lay-out-convolutions",
    "stablehlo-lay-out-loops",
    "stablehlo-hoist-invariants",
    "stablehlo-compute-steps-together",
    "stablehlo-gather-products",
    "stablehlo-hoist-gathers",
    "stablehlo-join-indices",
    "stablehlo-take-parts",
    "stablehlo-raise-views",
    "stablehlo-slice-first",
    "stablehlo-update-in-parts",
    "stablehlo-concatenate-in-groups",
    "stablehlo-cse",
    "stablehlo-recompute-residuals",  # after the last that would find twins
    "stablehlo-recompute-products",
    "stablehlo-stack-in-place",
    "stablehlo-chunk-products",
    "stablehlo-branch-on-scalars",
    "stablehlo-outline-control",
    "stablehlo-outline-small-matrices",
    "stablehlo-fuse{scalar-calls=true}",
)

# The same for GPUs, which do all lanes at once. Kernels of our own do matrix products, in any layout,
# and batches of matrices; loops of large steps are the driver's, which launches the kernels of each.
CUDA_INPUT = (
    "stablehlo-adopt-composites",
    "stablehlo-expand-lanes{form=threads}",
    *STABLEHLO_INPUT[3:],
)
_PREPARED_ON_GPUS = {
    "stablehlo-expand-fft{largest-prime=383 real=true}": "stablehlo-expand-fft",
    "stablehlo-legalize-reductions": "stablehlo-legalize-reductions{nccl=true}",
}
CUDA_PREPARE = tuple((patterns, _PREPARED_ON_GPUS.get(needed, needed)) for patterns, needed in STABLEHLO_PREPARE)
_NOT_ON_GPUS = (
    *STABLEHLO_FUSE[:3],  # all lanes at once; other types
    "stablehlo-chunk-attention",
    "stablehlo-reduce-windows",
    "stablehlo-reduce-parts",
    "stablehlo-reduce-in-chunks",
    "stablehlo-reduce-further",
    "stablehlo-find-extremes-first",
    "stablehlo-sum-few-products",
    "stablehlo-lay-out-contractions",
    "stablehlo-lay-out-convolutions",
    "stablehlo-lay-out-loops",
    "stablehlo-compute-steps-together",
    "stablehlo-take-parts",
    "stablehlo-update-in-parts",  # nothing is computed part by part there
    "stablehlo-chunk-products",
    "stablehlo-branch-on-scalars",  # the driver would wait for the scalar
    "stablehlo-outline-control",
    "stablehlo-outline-small-matrices",
)
_FUSE_ON_GPUS = (
    "stablehlo-fuse{matrix-products=kernel parts=false both-ways=false solved-in-place=false"
    " prologues=false max-plain=64 max-chain=192}"
)
CUDA_FUSE = (
    "stablehlo-legalize-ops{only=unsigned-operands}",
    "stablehlo-outline-attention-gradient{tensor-cores=true}",
    "stablehlo-outline-attention",  # before others take its parts
    *(name for name in STABLEHLO_FUSE[:-1] if name not in _NOT_ON_GPUS),
    f"stablehlo-outline-control{{gpu=true max-cost={GPU_LAUNCH_NS}}}",
    _FUSE_ON_GPUS,
)

# Values -> places in memory. Control flow first: the planner knows loops and branches by scf.
STABLEHLO_PLAN = (
    "stablehlo-legalize-control-flow",
    "stablehlo-plan-buffers{lends-results=true rotate-from=1024 overlaps=true}",
)
CUDA_PLAN = (*STABLEHLO_PLAN[:-1], "stablehlo-plan-buffers")

# A loop that is one kernel is a program of its own: the small buffers of its plan go on the stack,
# and the kernels in it are inlined.
CPU_CONTROL = (
    "stablehlo-fuse",
    "stablehlo-legalize-control-flow",
    "stablehlo-plan-buffers{own-place=16384 rotate-from=1024}",
)

# The same for a loop over lanes, whose tasks have nothing but their stacks to themselves.
CPU_LANES = (*CPU_CONTROL[:-1], "stablehlo-plan-buffers{own-place=32768 rotate-from=1024}")

# Ops that `stablehlo-legalize-ops` may have a rule for, as they stand in a kernel's text.
_LEGALIZED = (
    "stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce", "stablehlo.optimization_barrier",
    "stablehlo.batch_norm", "stablehlo.is_finite", "i1>", "ui64>",
)  # fmt: skip

# One kernel: what must be done first, each for kernels whose text has the word before it, or one of several.
CPU_KERNEL_PREPARE = (
    ("chlo.erf ", "stablehlo-legalize-ops{only=erf}"),
    ("chlo.", "func.func(chlo-legalize-to-stablehlo)"),
    ("lamina.inout", "stablehlo-match-updated-arguments"),
    (("<0x", "x0x"), "stablehlo-drop-empty-tensors"),
    (_LEGALIZED, "stablehlo-legalize-ops"),
    ("stablehlo.dot_general", "stablehlo-keep-factors"),
    ("stablehlo.convolution", "stablehlo-lower-convolutions"),
    ("stablehlo.scatter", "stablehlo-lower-scatter"),
    ("stablehlo.select_and_scatter", "stablehlo-lower-select-and-scatter"),
    (("stablehlo.triangular_solve", "stablehlo.cholesky"), "stablehlo-lower-solvers"),
    ("complex<", "stablehlo-define-complex,func.func(stablehlo-complex-math-expander)"),
    (("stablehlo.sort", "chlo.top_k"), "stablehlo-lower-sort"),
)

# Of these, what is left out for GPUs: a convolution is one product to them, whatever its steps, and threads
# need no vectors.
ONLY_ON_CPUS = ("stablehlo-keep-factors", "stablehlo-lower-convolutions")

# Kernels that are written as loops on buffers, or for each part of their result, by a word, or one of
# several, of their text: before all else is done, and lowered with what that leaves of StableHLO.
CPU_KERNEL_WRITTEN = (
    (("stablehlo.concatenate", "stablehlo.pad"), "stablehlo-compute-parts"),
    ('lamina.kind = "attention"', "cpu-write-attention{features=PRODUCT_FEATURES vector-bits=VECTOR_BITS}"),
    (
        'lamina.kind = "attention_gradient"',
        "cpu-write-attention-gradient{features=PRODUCT_FEATURES vector-bits=VECTOR_BITS}",
    ),
)

# One kernel: StableHLO on tensors -> linalg on tensors, results written to arguments.
CPU_KERNEL_LINALG = (
    "stablehlo-legalize-to-linalg",
    "stablehlo-convert-to-signless",
    "linalg-inline-scalar-generics",
    "linalg-fuse-long-chains",
    "func.func(linalg-fuse-elementwise-ops)",
    "func.func(linalg-generalize-named-ops)",
    "linalg-inline-extracted",
    "canonicalize",
    "cse",
    "linalg-reassociate-reductions",
    "linalg-results-to-arguments",
)

# linalg on tensors -> linalg on buffers: what follows differs between CPUs and GPUs.
KERNEL_BUFFERS = (
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map}",
    "cse",
    "memref-drop-results",
    "canonicalize",
    "memref-expand-copies",
)

# linalg on buffers -> loops, parallel ones in task functions, temporaries placed.
CPU_KERNEL_LOOPS = (
    "linalg-read-in-step",
    "linalg-scalars-first",
    "linalg-merge-dimensions",
    "linalg-recompute-cheap",
    "linalg-find-extremes-first",
    "linalg-overwrite-operands",
    "linalg-merge-column-sums",
    *KERNEL_BUFFERS,
    "linalg-widen-columns",
    "linalg-split-reductions",
    "func.func(linalg-generalize-named-ops)",
    "linalg-pack-short-rows{vector-bits=VECTOR_BITS}",
    "linalg-fuse-reductions{vector-bits=VECTOR_BITS}",
    "cpu-dot-product-gemm{features=PRODUCT_FEATURES vector-bits=VECTOR_BITS}",  # the target's
    "linalg-compute-columns{vector-bits=VECTOR_BITS}",
    "linalg-fill-lanes{vector-bits=VECTOR_BITS}",
    "linalg-tile-padded-copies",  # after what packs its factors anyway
    "linalg-pad-around",  # what could not be padded in parts
    "cpu-multiply-tiles{vector-bits=VECTOR_BITS}",
    "cpu-block-contractions{vector-bits=VECTOR_BITS}",
    "schedule-generics",
    "memref-outline-tasks",
    "func.func(scf-forall-to-for)",
    "math-widen-bf16{features=PRODUCT_FEATURES}",
    "memref-cut-long-loops{vector-bits=VECTOR_BITS gathers=GATHERS}",
    "memref-place-temporaries",
)

# The same, with the schedules that were chosen, and why.
EXPLAINED_LOOPS = tuple(
    "schedule-generics{explain=true}" if stage == "schedule-generics" else stage for stage in CPU_KERNEL_LOOPS
)

# Loops on buffers -> loops on whole buffers at places that plain arithmetic finds.
KERNEL_PLACES = (
    "fold-memref-alias-ops",
    "func.func(canonicalize)",
    "llvm-fold",  # in any dialect
    "cse",
    "expand-strided-metadata",
    "lower-affine",
)

# Those -> loops over vectors, where that leaves LLVM's vectoriser nothing to do.
CPU_KERNEL_VECTORS = (
    *KERNEL_PLACES,
    "memref-vectorize-loops{vector-bits=VECTOR_BITS gathers=GATHERS}",
)
CPU_STREAM_VECTORS = (
    *KERNEL_PLACES,
    "memref-vectorize-loops{vector-bits=VECTOR_BITS gathers=GATHERS prefetch=true}",
)
CPU_PRODUCT_VECTORS = (
    *KERNEL_PLACES,
    "memref-vectorize-loops{vector-bits=VECTOR_BITS gathers=GATHERS beside-vectors=true}",
)

# In a loop or branch that is one kernel: loops that only move elements, too, and elements that lie apart.
CPU_CONTROL_VECTORS = (
    *KERNEL_PLACES,
    "memref-vectorize-loops{vector-bits=VECTOR_BITS gathers=GATHERS everywhere=true}",
)

# Either -> scalars and vectors that the llvm dialect has, in control flow of blocks.
_SCALARS = (
    "convert-scf-to-cf",
    "convert-complex-to-standard",
    "math-allow-contraction",
    "math-expand-small-floats",
    "math-saturate-conversions",
    "math-expand-functions{vector-bits=VECTOR_BITS}",
)
_LLVM_FUNCTIONS = (
    "convert-complex-to-llvm",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
)
_LLVM_TEXT = (
    "reconcile-unrealized-casts",
    "llvm-fold",
    "cse",  # a seventh of all by now is written twice: constants, parts of addresses
    "llvm-elements-as-bytes",
    "llvm-call-task-runner",
    "llvm-portable-float-constants",
)

# Those -> the llvm dialect. Vectors have one dimension: others need `convert-vector-to-llvm`.
CPU_KERNEL_LLVM = (
    "math-divide-by-floats{vector-bits=VECTOR_BITS}",  # while there are loops to be seen
    "math-order-scalars",  # as well
    *_SCALARS,
    *_LLVM_FUNCTIONS,
    "memref-bare-arguments",
    "convert-to-llvm{filter-dialects=arith,cf,func,index,memref,ub,vector}",  # patterns made once
    *_LLVM_TEXT,
    "llvm-weigh-loops",
)

# Of these, what is left out for a kernel without ops whose names begin so, and without such words in
# its text; no other pass makes any. Finding nothing to do takes each of them longer than it takes to
# look at the names.
_SMALL_FLOATS = ("f16", "f8E", "f6E", "f4E")
_CONVERSIONS = ("arith.fptosi", "arith.fptoui")
_FUNCTIONS = ("math.", "arith.remf", "complex<", *_CONVERSIONS, *_SMALL_FLOATS)  # conversions use some, too
_BITS = ("i1>", "i2>", "i4>")  # in memory: what else is of few bits is computed on the way
_VIEWS = ("memref.subview", "memref.expand_shape", "memref.collapse_shape")
_METADATA = ("memref.extract_strided_metadata", "memref.extract_aligned_pointer_as_index")
_AFFINE = ("affine.apply", "affine.min", "affine.max")
ONLY_WITH = {
    "math-widen-bf16{features=PRODUCT_FEATURES}": ("bf16",),
    "fold-memref-alias-ops": _VIEWS,
    "func.func(canonicalize)": (*_VIEWS, "scf.if", *_AFFINE),  # else what it does is to fold
    "expand-strided-metadata": (*_VIEWS, *_METADATA),
    "lower-affine": (*_AFFINE, *_VIEWS, *_METADATA),
    "convert-complex-to-standard": ("complex<",),
    "convert-complex-to-llvm": ("complex<",),
    "math-expand-small-floats": _SMALL_FLOATS,
    "math-saturate-conversions": (*_CONVERSIONS, *_SMALL_FLOATS),
    "math-expand-functions{vector-bits=VECTOR_BITS}": _FUNCTIONS,
    "math-divide-by-floats{vector-bits=VECTOR_BITS}": ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui"),
    "convert-math-to-llvm{approximate-log1p=false}": _FUNCTIONS,
    "convert-math-to-libm": _FUNCTIONS,
    "llvm-elements-as-bytes": _BITS,
}

# One kernel for a GPU: what must be done before all that a CPU's has done, too.
CUDA_KERNEL_PREPARE = (
    (("precision = [HIGH,", "#stablehlo<precision HIGH>"), "stablehlo-note-tf32"),  # the latter in convolutions
)

# linalg on tensors -> kernels for blocks and threads, in a gpu.module.
CUDA_KERNEL_GPU = (
    "linalg-repeat-conversions",
    "func.func(linalg-fuse-elementwise-ops)",  # conversions into what was a named op before
    *KERNEL_BUFFERS,
    "func.func(linalg-generalize-named-ops)",
    "gpu-map-to-threads{arch=ARCH}",  # the target's
)

# What an op with kernels of its own leaves of StableHLO in them: scalar code.
CUDA_KERNEL_WRITTEN = (
    "gpu-write-kernels{arch=ARCH}",  # the target's
    "stablehlo-legalize-to-linalg",
    "stablehlo-convert-to-signless",
    "linalg-inline-scalar-generics",
    "canonicalize",
    "cse",
)

# Passes of CPU_KERNEL_PREPARE that make loops of such an op.
CUDA_NOT_BEFORE_WRITTEN = (
    "func.func(chlo-legalize-to-stablehlo)",
    "stablehlo-match-updated-arguments",
    "stablehlo-lower-scatter",
    "stablehlo-lower-select-and-scatter",
    "stablehlo-lower-solvers",
    "stablehlo-lower-sort",
)

# A loop or branch that is one kernel of a GPU, by its form, to a plan of kernels on buffers; and what
# is done to those before they are put into its steps.
_CUDA_CONTROL = (
    "stablehlo-legalize-ops{only=unsigned-operands}",
    _FUSE_ON_GPUS,
    "stablehlo-legalize-control-flow",
)
_CUDA_STACK = (*_CUDA_CONTROL, "stablehlo-plan-buffers{own-place=1000000000}")
_CUDA_SERIAL = (*KERNEL_BUFFERS, "func.func(linalg-generalize-named-ops)", "gpu-serial-loops")
CUDA_CONTROL = {
    "block": (*_CUDA_CONTROL, "stablehlo-plan-buffers"),
    "thread": _CUDA_STACK,
    "lanes": _CUDA_STACK,
}
CUDA_STEPS = {
    "block": (
        "linalg-repeat-conversions",
        "func.func(linalg-fuse-elementwise-ops)",
        *KERNEL_BUFFERS,
        "func.func(linalg-generalize-named-ops)",
        "gpu-map-to-threads{one-block=true}",
    ),
    "thread": _CUDA_SERIAL,
    "lanes": _CUDA_SERIAL,
}

# The same scalar code as on a CPU, around NVVM's registers, barriers and shuffles.
CUDA_KERNEL_LLVM = (
    "gpu-to-nvvm",
    "convert-nvgpu-to-nvvm",
    *KERNEL_PLACES,
    *(stage.replace("{vector-bits=VECTOR_BITS}", "{gpu=true}") for stage in _SCALARS),
    "gpu-pack-halves",
    "convert-vector-to-llvm{vector-transpose-lowering=shuffle1d}",  # what functions look up, too
    "arith-expand",
    "gpu-avoid-calls",  # once all divisions are there
    *_LLVM_FUNCTIONS,
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-cf-to-llvm",
    "convert-ub-to-llvm",
    *_LLVM_TEXT,
    "convert-nvvm-to-llvm",  # what is no intrinsic becomes inline assembly
    "llvm-finish-device-kernels",
)

ALL_PIPELINES = {
    "input": STABLEHLO_INPUT,
    "prepare": STABLEHLO_PREPARE,
    "optimize": STABLEHLO_OPTIMIZE,
    "fuse": STABLEHLO_FUSE,
    "plan": STABLEHLO_PLAN,
    "control": CPU_CONTROL,
    "lanes": CPU_LANES,
    "kernel-written": CPU_KERNEL_WRITTEN,
    "kernel-linalg": CPU_KERNEL_LINALG,
    "kernel-loops": CPU_KERNEL_LOOPS,
    "kernel-vectors": CPU_KERNEL_VECTORS,
    "stream-vectors": CPU_STREAM_VECTORS,
    "product-vectors": CPU_PRODUCT_VECTORS,
    "control-vectors": CPU_CONTROL_VECTORS,
    "kernel-llvm": CPU_KERNEL_LLVM,
    "cuda-input": CUDA_INPUT,
    "cuda-inputs-prepare": CUDA_PREPARE,
    "cuda-fuse": CUDA_FUSE,
    "cuda-plan": CUDA_PLAN,
    "cuda-prepare": CUDA_KERNEL_PREPARE,
    "cuda-gpu": CUDA_KERNEL_GPU,
    "cuda-written": CUDA_KERNEL_WRITTEN,
    "cuda-llvm": CUDA_KERNEL_LLVM,
    **{f"cuda-control-{form}": passes for form, passes in CUDA_CONTROL.items()},
    **{f"cuda-steps-{form}": passes for form, passes in CUDA_STEPS.items()},
}
