"""What libraries that define primitives of their own build on."""
