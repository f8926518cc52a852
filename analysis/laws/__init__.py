"""Fit models to curves: one at a time with intervals, thousands at once, and compared with each
other."""
