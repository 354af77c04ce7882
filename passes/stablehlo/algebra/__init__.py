"""Passes that compute the same by other arithmetic: in another order, in fewer passes over memory, or again
instead of from memory. Sums may round differently from the program as written."""
