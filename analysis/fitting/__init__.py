"""Fits of models to curves: one at a time with intervals, thousands at once, compared with each other."""
