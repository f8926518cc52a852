"""Intervals over blocks, the one judgement, reproduction, calibration and planning."""
