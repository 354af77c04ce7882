"""The part of `stablehlo-dce` about functions: uncalled ones, unread arguments and results."""

from __future__ import annotations

from collections import defaultdict

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import ancestors, functions_of

_PER_ARGUMENT, _PER_RESULT = "arg_attrs", "res_attrs"


def drop_uncalled(module: ir.Module, counter: Pass) -> None:
    """Erase private functions that nothing public reaches."""
    functions = functions_of(module)
    if not any(map(is_private, functions.values())):
        return
    reached: set[str] = set()
    work = [name for name, function in functions.items() if not is_private(function)]
    work += [
        name
        for op in module.body.operations
        if op.operation.name != "func.func"
        for name in _symbols_in(op.operation)
    ]
    while work:
        name = work.pop()
        if name not in reached and name in functions:
            reached.add(name)
            work += _symbols_in(functions[name])
    for name, function in functions.items():
        if name not in reached:
            function.erase()
            counter.count("functions")


def shrink_signatures(module: ir.Module, counter: Pass) -> list[ir.Operation]:
    """Drop arguments that a private function doesn't read, results that no call of it uses.

    Returns the functions in which something may have become unused.
    """
    functions = functions_of(module)
    if not any(map(is_private, functions.values())):
        return []
    calls: defaultdict[str, list[ir.Operation]] = defaultdict(list)
    referenced: set[str] = set()
    for op in module.body.operations:
        _collect_calls(op.operation, calls, referenced)
    touched: dict[ir.Operation, None] = {}
    for name, function in functions.items():
        sites = calls[name]
        if not is_private(function) or name in referenced or not sites or not _has_body(function):
            continue
        block = function.regions[0].blocks[0]
        reads = [next(iter(a.uses), None) is not None for a in block.arguments]
        used = [
            any(next(iter(site.results[number].uses), None) is not None for site in sites)
            for number in range(len(sites[0].results))
        ]
        if all(reads) and all(used):
            continue
        counter.count("arguments", reads.count(False))
        counter.count("results", used.count(False))
        touched |= {[*ancestors(site)][-1]: None for site in sites} | {function: None}
        for site in sites:
            _shrink_call(site, reads, used)
        _shrink_function(function, reads, used)
    return list(touched)


def is_private(function: ir.Operation) -> bool:
    """Whether a function can only be called from its module."""
    attributes = function.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"


def _has_body(function: ir.Operation) -> bool:
    return len(function.regions[0].blocks) == 1


def _symbols_in(op: ir.Operation) -> list[str]:
    calls: defaultdict[str, list[ir.Operation]] = defaultdict(list)
    referenced: set[str] = set()
    _collect_calls(op, calls, referenced)
    return [*calls, *referenced]


def _collect_calls(
    op: ir.Operation, calls: defaultdict[str, list[ir.Operation]], referenced: set[str]
) -> None:
    """All calls by callee, and the functions that ops other than calls name."""
    if op.name == "func.call":
        calls[op.attributes["callee"].value].append(op)
    elif op.name in ("stablehlo.custom_call", "stablehlo.composite"):
        referenced |= set(_symbol_names(op))
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _collect_calls(inner.operation, calls, referenced)


def _symbol_names(op: ir.Operation) -> list[str]:
    found = []
    for name in op.attributes:
        attribute = op.attributes[name]
        for part in attribute if isinstance(attribute, ir.ArrayAttr) else [attribute]:
            if isinstance(part, ir.FlatSymbolRefAttr):
                found.append(part.value)
    return found


def _shrink_call(call: ir.Operation, reads: list[bool], used: list[bool]) -> None:
    with ir.InsertionPoint(call), call.location:
        new = ir.Operation.create(
            "func.call",
            results=[r.type for r, keep in zip(call.results, used) if keep],
            operands=[v for v, keep in zip(call.operands, reads) if keep],
            attributes={name: call.attributes[name] for name in call.attributes},
        )
    kept = [r for r, keep in zip(call.results, used) if keep]
    for old, fresh in zip(kept, new.results):
        old.replace_all_uses_with(fresh)
    call.erase()


def _shrink_function(function: ir.Operation, reads: list[bool], used: list[bool]) -> None:
    block = function.regions[0].blocks[0]
    for number in reversed(range(len(reads))):
        if not reads[number]:
            block.erase_argument(number)
    terminator = block.operations[-1].operation
    kept = [v for v, keep in zip(terminator.operands, used) if keep]
    with ir.InsertionPoint(terminator), terminator.location:
        ir.Operation.create("func.return", operands=kept)
    terminator.erase()
    results = [v.type for v in kept]
    inputs = [a.type for a in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    for name, keeps in ((_PER_ARGUMENT, reads), (_PER_RESULT, used)):
        if name in function.attributes:
            each = [a for a, keep in zip(function.attributes[name], keeps) if keep]
            function.attributes[name] = ir.ArrayAttr.get(each)
