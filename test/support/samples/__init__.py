"""Sample applications of every primitive, by family."""
