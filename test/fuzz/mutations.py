"""Damage to programs: what a stranger, a disk or a pipe may do to text and bytes."""

from __future__ import annotations

import random
import re

_NUMBERS = (
    "0", "-1", "1", "2", "7", "64", "127", "-128", "65536", "2147483647", "-2147483648", "4294967296",
    "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1" * 60, "0x7F800000",
    "1e400", "?",
)  # fmt: skip
_WORDS = (
    "tensor<", ">", "<", "{", "}", "(", ")", "[", "]", ",", ":", "->", '"', "\\", "#", "!", "%", "@", "^",
    "dense<", "sparse<[[0]], [1]>", "array<i64: 1>", "loc(unknown)", "i1", "i64", "f16", "bf16", "f8E5M2",
    "complex<f32>", "index", "none", "tuple<>", "vector<4xf32>", "memref<4xf32>", "stablehlo.add",
    "stablehlo.custom_call", "chlo.", "affine_map<(d0) -> (d0)>", "unit", "dense_resource<a>", "\0", "é",
    "\\FF", "func.call @main", "// -----", "{-# dialect_resources: {} #-}", "*", "?x",
)  # fmt: skip
_TYPES = (
    "f16", "bf16", "f64", "f8E5M2", "f8E4M3FN", "f4E2M1FN", "i1", "i2", "i4", "i8", "i64", "ui8", "ui32",
    "ui64", "i128", "i7", "complex<f64>", "complex<f16>", "f80", "index", "!quant.uniform<i8:f32, 0.5>",
)  # fmt: skip
_OPERATIONS = (
    "add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "atan2", "and",
    "or", "xor", "shift_left", "shift_right_logical", "tanh", "exponential", "negate", "abs", "sine",
    "sqrt", "rsqrt", "cbrt", "log", "not", "popcnt", "sign", "floor", "logistic", "cosine",
)  # fmt: skip
_TOKEN = re.compile(r"[\w.$]+|[%@#!^][\w.$]+|\s+|->|.", re.DOTALL)


def damaged_text(text: str, other: str, draw: random.Random) -> str:
    """A program's text with a few tokens changed, some of them to another program's; or with other sizes,
    element types or operations in all places, which is often a valid program again."""
    tokens, others = _TOKEN.findall(text), _TOKEN.findall(other)
    if draw.random() < 0.5:
        for _ in range(draw.choice((1, 1, 2, 3))):
            tokens = draw.choice((_with_number, _with_type, _with_operation))(tokens, draw)
        return "".join(tokens)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at = draw.randrange(len(tokens))
        kind = draw.randrange(7)
        if kind == 0:
            del tokens[at : at + draw.choice((1, 1, 5, 50))]
        elif kind == 1:
            tokens[at] = draw.choice(_WORDS)
        elif kind == 2:
            tokens.insert(at, draw.choice(_WORDS))
        elif kind == 3:  # another of its kind
            same = [t for t in tokens if t[:1] == tokens[at][:1] and t != tokens[at]]
            tokens[at] = draw.choice(same or tokens)
        elif kind == 4:  # a part again, somewhere else
            part = tokens[at : at + draw.choice((1, 3, 20))]
            place = draw.randrange(len(tokens))
            tokens[place:place] = part * draw.choice((1, 1, 1, 40))
        elif kind == 5:
            begin = draw.randrange(len(others))
            tokens[at:at] = others[begin : begin + draw.choice((1, 4, 30))]
        else:
            tokens = _with_number(tokens, draw)
        tokens = tokens or [" "]
    return "".join(tokens)


def _with_type(tokens: list[str], draw: random.Random) -> list[str]:
    old, new = draw.choice(("f32", "i32", "i64", "bf16")), draw.choice(_TYPES)
    return [re.sub(rf"(?<![a-z]){old}\b", new, token) for token in tokens]


def _with_operation(tokens: list[str], draw: random.Random) -> list[str]:
    places = [i for i, token in enumerate(tokens) if token.removeprefix("stablehlo.") in _OPERATIONS]
    if places:
        tokens = tokens.copy()
        tokens[draw.choice(places)] = f"stablehlo.{draw.choice(_OPERATIONS)}"
    return tokens


def _with_number(tokens: list[str], draw: random.Random) -> list[str]:
    """Another number, in one place or, so that types still fit, in all of the same one."""
    text = "".join(tokens)
    found = re.findall(r"(?<![%@#\w.])\d+", text)
    if not found:
        return tokens
    old, new = draw.choice(found), draw.choice(_NUMBERS)
    count = draw.choice((1, 0))
    return _TOKEN.findall(re.sub(rf"(?<![%@#\w.]){old}(?=\D)", lambda _: new, text, count=count))


def damaged_bytes(data: bytes, draw: random.Random, keep: int = 0) -> bytes:
    """Bytes of which a few are changed, taken out or doubled; not the first `keep`."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        if len(found) <= keep:
            break
        at = draw.randrange(keep, len(found))
        kind = draw.randrange(6)
        if kind <= 1:
            found[at] = draw.randrange(256)
        elif kind == 2:
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 3:
            del found[at : at + draw.choice((1, 1, 2, 16, len(found)))]
        elif kind == 4:
            found[at:at] = found[at : at + draw.choice((1, 8, 100))]
        else:
            found[at : at + 4] = draw.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"))
    return bytes(found)


def damaged_json(value: object, draw: random.Random) -> object:
    """A JSON value in which one value, anywhere, is another."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(sorted(value))
        if draw.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: damaged_json(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        if draw.random() < 0.1:
            return value[:at] + value[at + 1 :]
        return [*value[:at], damaged_json(value[at], draw), *value[at + 1 :]]
    return draw.choice(
        (None, True, 0, -1, 1.5, 2**31, 2**63, 2**64, "", "x", "float32", [], [1], {}, {"kind": "cuda"},
         "object", float("inf"), [[]], "é" * 100)
    )  # fmt: skip
