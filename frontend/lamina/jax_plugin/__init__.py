"""JAX on lamina: a PJRT plugin, by which unmodified JAX compiles and runs its programs here."""
