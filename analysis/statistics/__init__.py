"""Intervals over blocks, the judgement, reproduction and synthetic campaigns."""
