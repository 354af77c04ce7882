"""Calls of Python functions from compiled programs: pure_callback, io_callback, debug.callback."""

from lamina.callbacks.io import io_callback as io_callback
from lamina.callbacks.pure import pure_callback as pure_callback
