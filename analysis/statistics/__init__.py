"""Intervals over blocks, the judgement, reproduction and calibration."""
