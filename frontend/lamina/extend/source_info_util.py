"""Frames of the stack, for libraries that hide their own."""

from lamina.core.source_info import leave_out_file as register_exclusion

__all__ = ["register_exclusion"]
