"""Trace a figure to the raw transcripts behind it, and verify that they are unchanged."""
