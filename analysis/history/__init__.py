"""The history of a cluster: all sessions of its campaigns over time, and what changed when."""
