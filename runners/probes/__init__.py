"""Small programs that run on a node: stand-alone scripts, found by `runners.tools` by their names."""
