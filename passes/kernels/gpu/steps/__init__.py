"""One kernel that does all steps of a small program, its loops and branches included."""
