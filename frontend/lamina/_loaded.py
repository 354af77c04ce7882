"""Loads what every program uses, with the garbage collector held off: it would walk all that an import makes,
which stays, for a tenth of the import's time."""

from lamina.core.garbage import held_off

with held_off():
    import lamina._connect
    import lamina.api
    import lamina.numpy  # noqa: F401 (loading it is what is wanted)
