"""Tokens, by which JAX orders effects, as arrays that mean nothing.

    func.func public @main(%t: !stablehlo.token, ...)   ->   func.func public @main(%t: tensor<0xi1>, ...)
    create_token                                        ->   an empty constant
    after_all %t, %u                                    ->   %t
    %u, %x = custom_call @f(%t, %a)                     ->   %x = custom_call @f(%a), and %t for %u

Calls with side effects happen in the order in which they are written, so that nothing else is needed.
"""

from __future__ import annotations

from typing import Any

_TOKEN = "!stablehlo.token"
_CALL = "stablehlo.custom_call"
_TOKEN_OPERANDS, _TOKEN_RESULTS = "lamina.token_operands", "lamina.token_results"
"""Of a custom call: where it had tokens."""


def tokens_of(call: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of tokens among the operands and the results that a custom call had."""
    names = (_TOKEN_OPERANDS, _TOKEN_RESULTS)
    had = [tuple(call.attributes[name]) if name in call.attributes else () for name in names]
    return had[0], had[1]


def drop_tokens(module: Any) -> list[list[int]]:
    """Replaces the tokens of a module. Gives the places of those among @main's arguments and results.

    Infeeds and their like, which need real tokens, are left as they are.
    """
    from lamina.dialects.vendors import ir

    users, values = _with_tokens(module, ir)
    if not users and not values:
        return [[], []]
    token = ir.RankedTensorType.get([0], ir.IntegerType.get_signless(1, module.context))
    found: list[list[int]] = [[], []]
    for op, _, _ in users:
        if op.name == "func.func":
            places = _retype(op, token, ir)
            if op.attributes["sym_name"].value == "main":
                found = places
    for value in values:
        value.set_type(token)
    for op, taken, made in users:
        if op.name == _CALL:
            _without_tokens(op, taken, made, token, ir)
        elif op.name in ("stablehlo.create_token", "stablehlo.after_all"):
            given = op.operands[0] if len(op.operands) else _no_token(op, token, ir)
            op.results[0].replace_all_uses_with(given)
            op.erase()
    return found


def _with_tokens(module: Any, ir: Any) -> tuple[list[tuple[Any, list[int], list[int]]], list[Any]]:
    """The ops that take or make tokens, with the places of these among their operands and results, and
    all values that are tokens."""
    users: list[tuple[Any, list[int], list[int]]] = []
    values: list[Any] = []

    def visit(op: Any) -> Any:
        op = op.operation
        taken, made = (_places(given) for given in (op.operands, op.results))
        values.extend(op.results[i] for i in made)
        for region in op.regions:
            for block in region.blocks:
                values.extend(block.arguments[i] for i in _places(block.arguments))
        if taken or made or (op.name == "func.func" and _TOKEN in str(_type_of(op))):
            users.append((op, taken, made))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return users, values


def _places(values: Any) -> list[int]:
    return [i for i, value in enumerate(values) if str(value.type) == _TOKEN]


def _type_of(function: Any) -> Any:
    return function.attributes["function_type"].value


def _retype(function: Any, token: Any, ir: Any) -> list[list[int]]:
    """Gives a function the type it has without tokens; says where they were."""
    of = _type_of(function)
    found, types = [], []
    for given in (of.inputs, of.results):
        found.append([i for i, one in enumerate(given) if str(one) == _TOKEN])
        types.append([token if str(one) == _TOKEN else one for one in given])
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(*types, context=function.context)
    )
    return found


def _without_tokens(call: Any, taken: list[int], made: list[int], token: Any, ir: Any) -> None:
    """The same custom call on arrays alone."""
    operands, results = list(call.operands), list(call.results)
    with ir.InsertionPoint(call), call.location:
        attributes = {name: call.attributes[name] for name in _names(call)}
        for name, places in (("operand_layouts", taken), ("result_layouts", made)):
            if name in attributes:
                attributes[name] = ir.ArrayAttr.get(_but(list(attributes[name]), places))
        for name, places in ((_TOKEN_OPERANDS, taken), (_TOKEN_RESULTS, made)):
            attributes[name] = ir.DenseI64ArrayAttr.get(places)
        new = ir.Operation.create(
            call.name,
            results=[value.type for value in _but(results, made)],
            operands=_but(operands, taken),
            attributes=attributes,
        )
    others = iter(new.results)
    given = operands[taken[0]] if taken else _no_token(call, token, ir) if made else None
    for i, value in enumerate(results):
        value.replace_all_uses_with(given if i in made else next(others))
    call.erase()


def _but(items: list[Any], places: list[int]) -> list[Any]:
    return [item for i, item in enumerate(items) if i not in places]


def _names(op: Any) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in op.attributes]


def _no_token(op: Any, token: Any, ir: Any) -> Any:
    with ir.InsertionPoint(op), op.location:
        false = ir.DenseElementsAttr.get_splat(
            token, ir.IntegerAttr.get(ir.IntegerType.get_signless(1), 0)
        )
        made = ir.Operation.create("stablehlo.constant", results=[token], attributes={"value": false})
    return made.result
