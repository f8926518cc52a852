"""The explorer: a page for any dataset, to select, leave out and click."""
