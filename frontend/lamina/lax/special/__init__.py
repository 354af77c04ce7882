"""Special functions that are programs of other operations, some with loops: gamma, beta, Bessel.

Each is an elementwise primitive, so that transformations see one operation with a known derivative;
lowering traces its program. This layer stands on lax and control_flow.
"""
