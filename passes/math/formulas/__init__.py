"""The elementary functions in arithmetic, one family a file.

Each formula takes terms of one lane and returns a term of it; it emits straight-line code, so that
a loop around it vectorises. Its docstring says the bound on its error in ulps (units in the last
place of the exact result), which test/backends/test_numerics_ulp.py checks. All of them return NaN
for NaN and the limits at zeros and infinities as IEEE 754 recommends; results below the smallest
normal number may be flushed to zero, as the runtime tells the processor to do anyway.
"""
