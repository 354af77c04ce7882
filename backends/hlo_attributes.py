"""The attributes of StableHLO ops, written as HLO text writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from lamina.dialects.vendors import ir, stablehlo_ext


def braces(numbers: Iterable[int]) -> str:
    """`{1,0}`"""
    return "{" + ",".join(map(str, numbers)) + "}"


def attributes_of(op: ir.Operation) -> list[str]:
    """What follows an instruction's operands, in order; computations and metadata left out."""
    write = _WRITERS.get(op.name)
    return write(op) if write is not None else []


def _dot(op: ir.Operation) -> list[str]:
    numbers = stablehlo_ext.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    found = []
    if numbers.lhs_batching_dimensions:
        found += [
            f"lhs_batch_dims={braces(numbers.lhs_batching_dimensions)}",
            f"rhs_batch_dims={braces(numbers.rhs_batching_dimensions)}",
        ]
    return [
        *found,
        f"lhs_contracting_dims={braces(numbers.lhs_contracting_dimensions)}",
        f"rhs_contracting_dims={braces(numbers.rhs_contracting_dimensions)}",
    ]


def _slice(op: ir.Operation) -> list[str]:
    parts = zip(
        *(op.attributes[f"{word}"] for word in ("start_indices", "limit_indices", "strides"))
    )
    shown = [f"[{start}:{limit}" + (f":{by}]" if by != 1 else "]") for start, limit, by in parts]
    return ["slice={" + ", ".join(shown) + "}"]


def _pad(op: ir.Operation) -> list[str]:
    words = ("edge_padding_low", "edge_padding_high", "interior_padding")
    parts = zip(*(op.attributes[word] for word in words))
    return ["padding=" + "x".join(f"{low}_{high}_{inner}" for low, high, inner in parts)]


def _gather(op: ir.Operation) -> list[str]:
    numbers = stablehlo_ext.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    return [
        f"offset_dims={braces(numbers.offset_dims)}",
        f"collapsed_slice_dims={braces(numbers.collapsed_slice_dims)}",
        f"start_index_map={braces(numbers.start_index_map)}",
        *_batching(numbers.operand_batching_dims, numbers.start_indices_batching_dims, "operand"),
        f"index_vector_dim={numbers.index_vector_dim}",
        f"slice_sizes={braces(op.attributes['slice_sizes'])}",
        *_true(op, "indices_are_sorted"),
    ]


def _scatter(op: ir.Operation) -> list[str]:
    numbers = stablehlo_ext.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    return [
        f"update_window_dims={braces(numbers.update_window_dims)}",
        f"inserted_window_dims={braces(numbers.inserted_window_dims)}",
        f"scatter_dims_to_operand_dims={braces(numbers.scattered_dims_to_operand_dims)}",
        *_batching(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, "input"),
        f"index_vector_dim={numbers.index_vector_dim}",
        *_true(op, "indices_are_sorted"),
        *_true(op, "unique_indices"),
    ]


def _batching(operand: list[int], indices: list[int], word: str) -> list[str]:
    if not operand:
        return []
    other = "start_indices" if word == "operand" else "scatter_indices"
    return [f"{word}_batching_dims={braces(operand)}", f"{other}_batching_dims={braces(indices)}"]


def _convolution(op: ir.Operation) -> list[str]:
    numbers = stablehlo_ext.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = op.operands[1].type.shape
    size = [kernel[d] for d in numbers.kernel_spatial_dimensions]
    groups = [
        f"{word}={op.attributes[word].value}"
        for word in ("feature_group_count", "batch_group_count")
        if op.attributes[word].value != 1
    ]
    labels = [
        _labels("b", "f", numbers.input_batch_dimension, numbers.input_feature_dimension,
                numbers.input_spatial_dimensions),
        _labels("o", "i", numbers.kernel_output_feature_dimension,
                numbers.kernel_input_feature_dimension, numbers.kernel_spatial_dimensions),
        _labels("b", "f", numbers.output_batch_dimension, numbers.output_feature_dimension,
                numbers.output_spatial_dimensions),
    ]  # fmt: skip
    shown = [_window(op, size, "window_strides", "lhs_dilation", "rhs_dilation")] if size else []
    return [*shown, f"dim_labels={labels[0]}_{labels[1]}->{labels[2]}", *groups]


def _labels(first: str, second: str, a: int, b: int, spatial: list[int]) -> str:
    names = {a: first, b: second} | {d: str(i) for i, d in enumerate(spatial)}
    return "".join(names[i] for i in range(len(names)))


def _between_devices(op: ir.Operation, dimension: str = "", words: str = "replica_groups") -> list[str]:
    """Of an operation between devices: `channel_id=1, replica_groups={{0,1}}, dimensions={0}`."""
    rows = [[n for n in row if n >= 0] for row in np.asarray(op.attributes[words]).tolist()]
    notes = [f"{words}={{{','.join(map(braces, rows))}}}", *_true(op, "use_global_device_ids")]
    if "channel_handle" in op.attributes:
        channel = re.search(r"handle = (\d+)", str(op.attributes["channel_handle"]))
        notes.insert(0, f"channel_id={channel[1] if channel else 0}")
    return notes + [f"dimensions={{{op.attributes[dimension].value}}}"] if dimension else notes


def _reduce_window(op: ir.Operation) -> list[str]:
    size = list(op.attributes["window_dimensions"])
    return [_window(op, size, "window_strides", "base_dilations", "window_dilations")]


def _window(op: ir.Operation, size: list[int], stride: str, base: str, dilation: str) -> str:
    """`window={size=2x2 stride=2x2 pad=0_0x0_0 lhs_dilate=1x1 rhs_dilate=1x1}` less defaults."""
    parts = [f"size={_times(size)}"]
    for label, word in (("stride", stride), ("lhs_dilate", base), ("rhs_dilate", dilation)):
        if word in op.attributes and any(n != 1 for n in op.attributes[word]):
            parts.append(f"{label}={_times(op.attributes[word])}")
    if "padding" in op.attributes:
        padding = np.asarray(op.attributes["padding"]).reshape(-1, 2)
        if padding.any():
            parts.insert(1, "pad=" + "x".join(f"{low}_{high}" for low, high in padding.tolist()))
    return "window={" + " ".join(parts) + "}"


def _times(numbers: Iterable[int]) -> str:
    return "x".join(map(str, numbers))


def _true(op: ir.Operation, word: str) -> list[str]:
    if word not in op.attributes:
        return []
    given = op.attributes[word]
    return [f"{word}=true"] if isinstance(given, ir.UnitAttr) or given.value else []


def _last_word(attribute: ir.Attribute) -> str:
    """`GT` of `#stablehlo<comparison_direction GT>`."""
    return str(attribute).split()[-1].rstrip(">")


_WRITERS: dict[str, Callable[[ir.Operation], list[str]]] = {
    "chlo.top_k": lambda op: [f"k={op.attributes['k'].value}", "largest=true"],
    "stablehlo.all_gather": lambda op: _between_devices(op, "all_gather_dim"),
    "stablehlo.all_reduce": _between_devices,
    "stablehlo.all_to_all": lambda op: _between_devices(op, "split_dimension"),
    "stablehlo.collective_broadcast": _between_devices,
    "stablehlo.collective_permute": lambda op: _between_devices(op, words="source_target_pairs"),
    "stablehlo.reduce_scatter": lambda op: _between_devices(op, "scatter_dimension"),
    "stablehlo.broadcast_in_dim": lambda op: [
        f"dimensions={braces(op.attributes['broadcast_dimensions'])}"
    ],
    "stablehlo.cholesky": lambda op: _true(op, "lower"),
    "stablehlo.compare": lambda op: [
        f"direction={_last_word(op.attributes['comparison_direction'])}"
    ],
    "stablehlo.concatenate": lambda op: [f"dimensions={{{op.attributes['dimension'].value}}}"],
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_slice": lambda op: [
        f"dynamic_slice_sizes={braces(op.attributes['slice_sizes'])}"
    ],
    "stablehlo.fft": lambda op: [
        f"fft_type={_last_word(op.attributes['fft_type'])}",
        f"fft_length={braces(op.attributes['fft_length'])}",
    ],
    "stablehlo.gather": _gather,
    "stablehlo.iota": lambda op: [f"iota_dimension={op.attributes['iota_dimension'].value}"],
    "stablehlo.pad": _pad,
    "stablehlo.reduce": lambda op: [f"dimensions={braces(op.attributes['dimensions'])}"],
    "stablehlo.reduce_precision": lambda op: [
        f"{word}={op.attributes[word].value}" for word in ("exponent_bits", "mantissa_bits")
    ],
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reverse": lambda op: [f"dimensions={braces(op.attributes['dimensions'])}"],
    "stablehlo.rng_bit_generator": lambda op: [
        f"algorithm=rng_{_last_word(op.attributes['rng_algorithm']).lower()}"
    ],
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": lambda op: [
        _window(op, list(op.attributes["window_dimensions"]), "window_strides", "", "")
    ],
    "stablehlo.slice": _slice,
    "stablehlo.sort": lambda op: [
        f"dimensions={{{op.attributes['dimension'].value}}}",
        *_true(op, "is_stable"),
    ],
    "stablehlo.transpose": lambda op: [f"dimensions={braces(op.attributes['permutation'])}"],
    "stablehlo.triangular_solve": lambda op: [
        *_true(op, "left_side"),
        *_true(op, "lower"),
        *_true(op, "unit_diagonal"),
        f"transpose_a={_last_word(op.attributes['transpose_a'])}",
    ],
}
