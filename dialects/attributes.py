"""Reading the attributes of ops."""

from __future__ import annotations

from lamina.dialects.vendors import ir


def flag(op: ir.Operation, name: str) -> bool:
    """Whether an op has an option set; custom calls have theirs in backend_config."""
    attributes = op.attributes
    if "backend_config" in attributes:
        attributes = ir.DictAttr(attributes["backend_config"])
    return name in attributes and ir.BoolAttr(attributes[name]).value
