"""Pytree functions under their short names: lamina.tree.map, lamina.tree.leaves, ..."""

from lamina.tree_registration import static as static
from lamina.tree_util import tree_all as all
from lamina.tree_util import tree_broadcast as broadcast
from lamina.tree_util import tree_flatten as flatten
from lamina.tree_util import tree_flatten_with_path as flatten_with_path
from lamina.tree_util import tree_leaves as leaves
from lamina.tree_util import tree_leaves_with_path as leaves_with_path
from lamina.tree_util import tree_map as map
from lamina.tree_util import tree_map_with_path as map_with_path
from lamina.tree_util import tree_reduce as reduce
from lamina.tree_util import tree_reduce_associative as reduce_associative
from lamina.tree_util import tree_structure as structure
from lamina.tree_util import tree_transpose as transpose
from lamina.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip
