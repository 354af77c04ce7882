"""Passes about loops that a program has: what need not be done in each step, and what steps can share."""
