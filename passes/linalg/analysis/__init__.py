"""What a `linalg.generic` says of itself, read once into Python."""
