"""What passes of several levels emit IR with: nests of `scf.for` (loops), scalar expressions with Python's operators
(scalars), and copies of ops on other values (copies)."""
