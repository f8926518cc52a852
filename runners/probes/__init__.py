"""Small programs that run on a node: stand-alone scripts, found by `runners.executables` by their
names.
"""
