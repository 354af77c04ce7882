"""Looking at values while compiled programs run."""

from lamina.callbacks.breakpoint import breakpoint as breakpoint
from lamina.callbacks.debugging import DebugEffect as DebugEffect
from lamina.callbacks.debugging import OrderedDebugEffect as OrderedDebugEffect
from lamina.callbacks.debugging import callback as callback
from lamina.callbacks.debugging import log as log
from lamina.callbacks.debugging import print as print
from lamina.callbacks.sharding_pictures import inspect_array_sharding as inspect_array_sharding
from lamina.callbacks.sharding_pictures import visualize_array_sharding as visualize_array_sharding
from lamina.callbacks.sharding_pictures import visualize_sharding as visualize_sharding

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
