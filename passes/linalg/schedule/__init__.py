"""What is done to generics before `schedule-generics` chooses their loops: sums in chunks or in one pass over memory,
blocks of columns that are copied into the cache, short rows in panels, padded copies tile by tile.
What flows in and out is generics on buffers."""
