"""One module an experiment: what follows from its dataset, its figures, and its finding in plain English."""
