"""The machine that code is for: what is known of processors (data), what this one has (facts), what was measured on
it (calibrate, kept in the store), and which of these a compilation goes by (choice).

`lamina.passes.framework.machine.Machine` is what comes out; a `Target` holds one, so that it is part of every key.
Numbers about machines are in `data`, in what that class has where nothing else is said, and, of compiling, in
compile_times.
"""
