"""The rules of `stablehlo-simplify`, by what they are about."""
