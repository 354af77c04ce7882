"""Scans: within a block, and of long rows across blocks."""
