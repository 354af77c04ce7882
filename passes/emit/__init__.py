"""What passes of several levels emit IR with: nests of `scf.for` (loops), scalar expressions with Python's operators
(scalars), copies of ops on other values (copies), squares transposed in registers (transposition), and calls of LLVM's
intrinsics (intrinsics)."""
