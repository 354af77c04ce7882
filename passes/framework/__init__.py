"""What passes stand on: what a pass is (base), where it is found (registry), how passes are run (pipeline,
options, instrumentation, upstream), where ops are (find), and the machine that code is for (machine)."""
