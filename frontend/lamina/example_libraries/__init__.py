"""Small libraries that JAX ships beside its interface: layers (stax) and optimisers."""
