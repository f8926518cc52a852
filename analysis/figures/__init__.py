"""The published figures, one module for each experiment; each function takes derived data and returns a Figure."""
