"""The builders that `lamina.dialects.stablehlo` gives out, by family."""
