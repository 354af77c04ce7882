"""One kernel function in StableHLO to one object file.

ABI of the compiled function: bare pointers to
dense row-major data, the inputs, then the results that no input's buffer holds, then the scratch
region; it returns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import field, replace

from lamina.backends.cpu.control import control_kernel
from lamina.backends.cpu.generate import generating
from lamina.backends.cpu.in_step import in_step
from lamina.backends.cpu.libraries import WRITTEN_IN_VECTORS, library_kernel
from lamina.backends.cpu.products import with_shared
from lamina.backends.effort import LITTLE, MUCH, WORK
from lamina.backends.kernel_source import module_of, symbol_of, text_without_name
from lamina.backends.llvm_codegen import (
    FAST,
    LOOPS_OF_VECTORS,
    OF_FUNCTIONS,
    OF_VECTORS,
    CodegenOptions,
    TargetMachine,
    emit,
)
from lamina.backends.pipelines import (
    CPU_KERNEL_VECTORS,
    CPU_PRODUCT_VECTORS,
    CPU_STREAM_VECTORS,
    KERNEL_PLACES,
)
from lamina.backends.target import Target
from lamina.dialects.attributes import KIND, LIBRARY, string_of
from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.framework.machine_attribute import machine_of, write_machine
from lamina.passes.framework.pipeline import checked_if_it_fails
from lamina.passes.kernels.cpu.gemm.product_shape import SHARED
from lamina.passes.llvm.limit_inlining import LimitInlining
from lamina.records import Record

_CONVOLUTION = "stablehlo.convolution"
_CONTRACTIONS = ("stablehlo.dot_general", _CONVOLUTION)


class KernelObject(Record):
    """A compiled kernel. `imports` are the runtime symbols it calls; `texts` holds the stages that
    were asked for."""

    symbol: str
    object: bytes
    scratch_bytes: int
    imports: tuple[str, ...]
    texts: dict[str, str] = field(default_factory=dict)


def compile_kernel(kernel: ir.Operation, target: Target, keep_texts: bool = False) -> KernelObject:
    """The object file of a `func.func` of StableHLO ops on static tensors, exporting the
    symbol that `symbol_of` gives it.

    The function is left as it is. Raises CompileError naming the op that can't be compiled.
    With `keep_texts`, `texts` has the stages "linalg", "llvm" and "asm", and "schedule" where loops are scheduled.
    """
    source = text_without_name(kernel)
    lowered = lower_kernel(kernel, symbol_of(kernel, target), source, target, keep_texts)
    return emit_kernel(lowered, target, keep_texts)


class LoweredKernel(Record):
    """A kernel in LLVM IR: MLIR has done its part, LLVM has not."""

    symbol: str
    llvm_ir: str
    scratch_bytes: int
    codegen: CodegenOptions
    texts: dict[str, str]


def lower_kernel(
    kernel: ir.Operation, symbol: str, source: str, target: Target, keep_texts: bool = False
) -> LoweredKernel:
    """MLIR's half of `compile_kernel`, for a function whose `text_without_name` is `source`."""
    (lowered,) = checked_if_it_fails(lambda: _in_step([(kernel, symbol, source)], target, keep_texts))
    return lowered


def lower_kernels(
    kernels: Sequence[tuple[ir.Operation, str, str]], target: Target
) -> list[LoweredKernel]:
    """`lower_kernel` for several, given as functions with symbols and sources, all of one context: in less
    time than one after the other."""
    return checked_if_it_fails(
        lambda: _in_step(kernels, target), lambda: [lower_kernel(*kernel, target) for kernel in kernels]
    )


def _in_step(
    kernels: Sequence[tuple[ir.Operation, str, str]], target: Target, keep_texts: bool = False
) -> list[LoweredKernel]:
    with kernels[0][0].context, ir.Location.unknown():
        return in_step(_lowering(*kernel, target, keep_texts) for kernel in kernels)


def _lowering(
    kernel: ir.Operation, symbol: str, source: str, target: Target, keep_texts: bool
) -> Generator[None, None, LoweredKernel]:
    texts: dict[str, str] | None = {} if keep_texts else None
    module = module_of(kernel, symbol)
    write_machine(module, target.machine)
    function = module.body.operations[0].operation
    kind = string_of(function, KIND)
    is_control = kind == "control"
    # Its many short loops and copies are worth all that LLVM does: 0.84 to 0.95 of the time.
    is_attention = kind in ("attention", "attention_gradient")
    streams = _streams(function)
    written = library_kernel(function, symbol, target)
    calls_library = written is not None
    of_vectors = in_order = simplify = control_of_vectors = False
    if is_control:
        control = control_kernel(module, symbol, target, texts)
        written = control.llvm_ir, control.scratch_bytes
        control_of_vectors = control.of_vectors
    elif written is None:
        places = _places(kernel, source, streams)
        inlining = _inlining(_bytes(function))
        generated = yield from generating(module, source, target, texts, symbol, places, inlining)
        of_vectors, in_order, simplify = generated.of_vectors, generated.in_order, generated.simplify
        written = generated.llvm_ir, generated.scratch_bytes[symbol]
    else:
        of_vectors = string_of(function, LIBRARY) in WRITTEN_IN_VECTORS
        if texts is not None:
            texts["linalg"] = str(module)
    text, scratch = with_shared(written[0], target), written[1]
    # Small contractions live by unrolling, unless they are blocked by now, and arrays in registers;
    # for all else it only makes more code to compile.
    contracts = any(word in source for word in _CONTRACTIONS)
    is_blocked = contracts and not is_control and _is_blocked(text)
    is_short_convolution = _CONVOLUTION in source and string_of(kernel, WORK) != MUCH
    codegen = CodegenOptions(
        level=2,
        # The same loops in three quarters of the time; not of what sums along rows, as products do.
        passes=1 if is_blocked or is_short_convolution else 2,
        unroll=is_control or (contracts and not is_blocked),
    )
    if of_vectors and not is_attention:
        shares_work = len(_FUNCTION.findall(text)) > 1
        codegen = LOOPS_OF_VECTORS if simplify else OF_FUNCTIONS if shares_work else OF_VECTORS
        # Products in tile registers live by their innermost loop, which does not carry its places itself.
        codegen = replace(codegen, in_order=in_order, reduce_strength=is_blocked and "@llvm.x86." in text)
    if control_of_vectors:
        codegen = LOOPS_OF_VECTORS
    if string_of(kernel, WORK) == LITTLE or (calls_library and " br " not in text):
        codegen = FAST  # little is done in it, or nothing but a call
    return LoweredKernel(symbol, text, scratch, codegen, texts or {})


def emit_kernel(lowered: LoweredKernel, target: Target, keep_texts: bool = False) -> KernelObject:
    """LLVM's half of `compile_kernel`. Touches no MLIR and holds no Python lock while LLVM works,
    so
    that it can run beside the lowering of another kernel."""
    code = emit(
        lowered.llvm_ir,
        TargetMachine(target.triple, target.cpu, target.tuned_features),
        lowered.codegen,
        keep_texts=keep_texts,
    )
    texts = dict(lowered.texts)
    if keep_texts:
        texts |= {"llvm": code.optimised or "", "asm": code.assembly or ""}
    return KernelObject(
        lowered.symbol, code.object, lowered.scratch_bytes, _imports(lowered.llvm_ir), texts
    )


_STREAMED = 2  # second caches, beyond which arrays are not in that of a core by the next call

# Bytes from which on arrays are worth more of LLVM's time, and up to which loops of scalars are worth none.
_LARGE, _TINY = 1 << 20, 1 << 11  # code


def _inlining(size: int) -> LimitInlining:
    """How often functions are inlined in a kernel of arrays of so many bytes."""
    return LimitInlining(most=64) if size >= _LARGE else LimitInlining(scalars=size <= _TINY)


def _streams(function: ir.Operation) -> bool:
    """Whether all that a kernel does is to go once through arrays that are large."""
    if string_of(function, KIND) != "loop":
        return False
    return _bytes(function) >= _STREAMED * machine_of(function).l2_bytes


def _bytes(function: ir.Operation) -> int:
    """Of all operands and results."""
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return sum(map(byte_size, (*signature.inputs, *signature.results)))


def _places(kernel: ir.Operation, source: str, streams: bool) -> tuple[str, ...]:
    """The passes that decide whether LLVM's vectoriser is needed."""
    # Long convolutions are worth what LLVM does to their loops and addresses.
    work = string_of(kernel, WORK)
    if work == LITTLE or (work == MUCH and _CONVOLUTION in source):
        return KERNEL_PLACES
    if streams:
        return CPU_STREAM_VECTORS
    contracts = any(word in source for word in _CONTRACTIONS)
    return CPU_PRODUCT_VECTORS if contracts else CPU_KERNEL_VECTORS


# Instructions of products, not those that look up tables (passes/math/lookups.py), and calls of the packed one.
_OF_BLOCKS = re.compile(rf"@(llvm\.(fmuladd\.v|x86\.(?!avx512\.vpermi2var))|{SHARED})")

# Elementary functions (passes/math/expand_functions.py).
_FUNCTION = re.compile(r"\ndefine internal [^@]*@lamina_(?!\w+_mend)")


def _is_blocked(text: str) -> bool:
    return _OF_BLOCKS.search(text) is not None


def _imports(text: str) -> tuple[str, ...]:
    declared = re.findall(r"\ndeclare [^@]*@([\w.$]+)\(", f"\n{text}")
    return tuple(sorted(name for name in declared if not name.startswith("llvm.")))
