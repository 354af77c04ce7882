"""lamina: a compiler for array programs.

Write NumPy-style functions, transform them (grad, vmap, jvp, ...), and jit them: they are traced to
jaxprs, lowered to StableHLO, optimised by MLIR passes and compiled to machine code.
"""

from __future__ import annotations

import typing as _typing

from lamina import _loaded as _loaded
from lamina import config as config
from lamina import errors as errors
from lamina import tree as tree
from lamina import tree_util as tree_util
from lamina._connect import connect as _connect
from lamina.api import ShapeDtypeStruct as ShapeDtypeStruct
from lamina.api import eval_shape as eval_shape
from lamina.api import fwd_and_bwd as fwd_and_bwd
from lamina.api import grad as grad
from lamina.api import hessian as hessian
from lamina.api import jacfwd as jacfwd
from lamina.api import jacobian as jacobian
from lamina.api import jacrev as jacrev
from lamina.api import jit as jit
from lamina.api import jvp as jvp
from lamina.api import linear_transpose as linear_transpose
from lamina.api import linearize as linearize
from lamina.api import make_jaxpr as make_jaxpr
from lamina.api import value_and_grad as value_and_grad
from lamina.api import vjp as vjp
from lamina.api import vmap as vmap
from lamina.config import allow_f16_reductions as allow_f16_reductions
from lamina.config import array_garbage_collection_guard as array_garbage_collection_guard
from lamina.config import auto_pcast as auto_pcast
from lamina.config import check_tracer_leaks as check_tracer_leaks
from lamina.config import debug_infs as debug_infs
from lamina.config import debug_key_reuse as debug_key_reuse
from lamina.config import debug_nans as debug_nans
from lamina.config import default_device as default_device
from lamina.config import default_matmul_precision as default_matmul_precision
from lamina.config import default_prng_impl as default_prng_impl
from lamina.config import disable_jit as disable_jit
from lamina.config import enable_checks as enable_checks
from lamina.config import enable_custom_prng as enable_custom_prng
from lamina.config import enable_x64 as enable_x64
from lamina.config import explain_cache_misses as explain_cache_misses
from lamina.config import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
from lamina.config import legacy_prng_key as legacy_prng_key
from lamina.config import log_compiles as log_compiles
from lamina.config import matrix_products as matrix_products
from lamina.config import no_execution as no_execution
from lamina.config import no_tracing as no_tracing
from lamina.config import numpy_dtype_promotion as numpy_dtype_promotion
from lamina.config import numpy_rank_promotion as numpy_rank_promotion
from lamina.config import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from lamina.config import softmax_custom_jvp as softmax_custom_jvp
from lamina.config import thread_guard as thread_guard
from lamina.config import threefry_partitionable as threefry_partitionable
from lamina.config import transfer_guard as transfer_guard
from lamina.config import transfer_guard_device_to_device as transfer_guard_device_to_device
from lamina.config import transfer_guard_device_to_host as transfer_guard_device_to_host
from lamina.config import transfer_guard_host_to_device as transfer_guard_host_to_device
from lamina.control_flow import custom_jvp as custom_jvp
from lamina.core import Array as Array
from lamina.core import ensure_compile_time_eval as ensure_compile_time_eval
from lamina.core.lazy_names import lazy_names as _lazy_names
from lamina.core.source_info import named_scope as named_scope

_connect()

from lamina import lax as lax
from lamina import numpy as numpy
from lamina.devices import block_until_ready as block_until_ready
from lamina.devices import copy_to_host_async as copy_to_host_async
from lamina.devices import default_backend as default_backend
from lamina.devices import device_count as device_count
from lamina.devices import device_get as device_get
from lamina.devices import device_put as device_put
from lamina.devices import device_put_replicated as device_put_replicated
from lamina.devices import device_put_sharded as device_put_sharded
from lamina.devices import devices as devices
from lamina.devices import local_device_count as local_device_count
from lamina.devices import local_devices as local_devices
from lamina.devices import process_count as process_count
from lamina.devices import process_index as process_index
from lamina.devices import process_indices as process_indices

if _typing.TYPE_CHECKING:
    from lamina import ad as ad
    from lamina import ad_checkpoint as ad_checkpoint
    from lamina import api_util as api_util
    from lamina import checkpoint_policies as checkpoint_policies
    from lamina import cuda as cuda
    from lamina import custom_batching as custom_batching
    from lamina import custom_derivatives as custom_derivatives
    from lamina import debug as debug
    from lamina import distributed as distributed
    from lamina import dlpack as dlpack
    from lamina import dtypes as dtypes
    from lamina import example_libraries as example_libraries
    from lamina import experimental as experimental
    from lamina import export as export
    from lamina import extend as extend
    from lamina import ffi as ffi
    from lamina import flatten_util as flatten_util
    from lamina import image as image
    from lamina import memory as memory
    from lamina import monitoring as monitoring
    from lamina import nn as nn
    from lamina import ops as ops
    from lamina import profiler as profiler
    from lamina import random as random
    from lamina import ref as ref
    from lamina import scipy as scipy
    from lamina import sharding as sharding
    from lamina import test_util as test_util
    from lamina import typing as typing
    from lamina.ad_checkpoint import checkpoint as checkpoint
    from lamina.ad_checkpoint import remat as remat
    from lamina.array import Device as Device
    from lamina.array import Shard as Shard
    from lamina.callbacks import pure_callback as pure_callback
    from lamina.callbacks.barrier import effects_barrier as effects_barrier
    from lamina.custom_derivatives import closure_convert as closure_convert
    from lamina.custom_derivatives import custom_gradient as custom_gradient
    from lamina.custom_derivatives import custom_vjp as custom_vjp
    from lamina.dtypes import float0 as float0
    from lamina.environment import clear_caches as clear_caches
    from lamina.environment import live_arrays as live_arrays
    from lamina.environment import named_call as named_call
    from lamina.environment import print_environment_info as print_environment_info
    from lamina.environment import typeof as typeof
    from lamina.jit.compiler_levels import CompilerEffortLevel as CompilerEffortLevel
    from lamina.jit.compiler_levels import Inline as Inline
    from lamina.numpy.slices import ds as ds
    from lamina.python_control import autograph as autograph
    from lamina.ref import Ref as Ref
    from lamina.ref import empty_ref as empty_ref
    from lamina.ref import free_ref as free_ref
    from lamina.ref import freeze as freeze
    from lamina.ref import new_ref as new_ref
    from lamina.sharding import NamedSharding as NamedSharding
    from lamina.sharding import P as P
    from lamina.sharding import get_abstract_mesh as get_abstract_mesh
    from lamina.sharding import get_mesh as get_mesh
    from lamina.sharding import make_array_from_callback as make_array_from_callback
    from lamina.sharding import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from lamina.sharding import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from lamina.sharding import make_mesh as make_mesh
    from lamina.sharding import reshard as reshard
    from lamina.sharding import set_mesh as set_mesh
    from lamina.sharding import use_abstract_mesh as use_abstract_mesh
    from lamina.sharding.pmap import pmap as pmap
    from lamina.sharding.shard_map import shard_map as shard_map
    from lamina.sharding.shard_map import smap as smap
    from lamina.stablehlo_api import compile_stablehlo as compile_stablehlo
    from lamina.threads import get_num_threads as get_num_threads
    from lamina.threads import num_threads as num_threads
    from lamina.threads import set_num_threads as set_num_threads
    from lamina.user_context import make_user_context as make_user_context

checking_leaks = check_tracer_leaks
host_count = process_count
host_id = process_index
host_ids = process_indices

__version__ = "0.1.0"

# Loaded when first named, so that a program pays for what it uses.
# One a line, sorted: many hands add to these.
_MODULES = frozenset(
    {
        "ad",
        "ad_checkpoint",
        "api_util",
        "checkpoint_policies",
        "cuda",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "distributed",
        "dlpack",
        "dtypes",
        "example_libraries",
        "experimental",
        "export",
        "extend",
        "ffi",
        "flatten_util",
        "image",
        "memory",
        "monitoring",
        "nn",
        "ops",
        "profiler",
        "random",
        "ref",
        "scipy",
        "sharding",
        "test_util",
        "typing",
    }
)
_HOMES = {
    "lamina.ad_checkpoint": ("checkpoint", "remat"),
    "lamina.array": ("Device", "Shard"),
    "lamina.callbacks": ("pure_callback",),
    "lamina.callbacks.barrier": ("effects_barrier",),
    "lamina.jit.compiler_levels": ("CompilerEffortLevel", "Inline"),
    "lamina.custom_derivatives": ("closure_convert", "custom_gradient", "custom_vjp"),
    "lamina.dtypes": ("float0",),
    "lamina.environment": (
        "clear_caches", "live_arrays", "named_call", "print_environment_info", "typeof"
    ),
    "lamina.numpy.slices": ("ds",),
    "lamina.python_control": ("autograph",),
    "lamina.ref": ("Ref", "empty_ref", "free_ref", "freeze", "new_ref"),
    "lamina.sharding": (
        "NamedSharding", "P", "get_abstract_mesh", "get_mesh", "make_array_from_callback",
        "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_mesh",
        "reshard", "set_mesh", "use_abstract_mesh"
    ),
    "lamina.sharding.pmap": ("pmap",),
    "lamina.sharding.shard_map": ("shard_map", "smap"),
    "lamina.stablehlo_api": ("compile_stablehlo",),
    "lamina.threads": ("get_num_threads", "num_threads", "set_num_threads"),
    "lamina.user_context": ("make_user_context",),
}  # fmt: skip

if not _typing.TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = _lazy_names(__name__, _MODULES, _HOMES)
