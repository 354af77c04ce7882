"""From a StableHLO module to an artifact: the driver, its stages and pipelines, and the targets."""
