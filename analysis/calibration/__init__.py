"""How often intervals and verdicts are wrong, in thousands of synthetic campaigns."""
