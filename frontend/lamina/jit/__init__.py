"""jit: from a call to what runs for it. `function` is what users call; a call that its fast path does not know goes to
`calls`, which asks `traces` for the jaxpr of such arguments and `programs` for what is compiled of it, or found in the
store by `program_key`. `program_plan` says what the compiler is given, `options` and `compiler_options` what users set.
"""
