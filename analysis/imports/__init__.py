"""A user's own files become a dataset."""
