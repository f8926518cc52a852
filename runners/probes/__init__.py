"""Small stand-alone scripts that run on a node; `runners.tools` finds them by name."""
