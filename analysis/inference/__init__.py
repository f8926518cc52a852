"""Statements from blocks: intervals, verdicts, corrections for several of them, and their power."""
