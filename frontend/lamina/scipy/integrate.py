"""Integrals of samples."""

from lamina.numpy.differences import trapezoid as trapezoid

__all__ = ["trapezoid"]
