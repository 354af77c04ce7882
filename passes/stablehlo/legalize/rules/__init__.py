"""Rules of `stablehlo-legalize-ops`, each in a file of its own. A file says what an op means in StableHLO that
upstream's lowering to linalg does otherwise or not at all, and holds `RULE`, or several."""
