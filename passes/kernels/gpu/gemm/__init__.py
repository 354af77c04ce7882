"""Matrix products: read off generics, tiled by a model of the GPU, multiplied by tensor cores or threads."""
