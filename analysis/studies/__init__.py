"""One module for each experiment: everything that is derived from its campaign, in one place."""
