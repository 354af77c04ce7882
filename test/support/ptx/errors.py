"""What a kernel does that a GPU would not forgive, or that the emulator does not know."""


class PtxError(AssertionError):
    """A fault of a program, with the line of PTX that it happened at."""


class UnknownPtx(PtxError):
    """An instruction, a modifier or a directive that the emulator has no meaning for."""
