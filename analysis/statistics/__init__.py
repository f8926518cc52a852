"""Intervals over blocks, the one judgement, reproduction and calibration."""
