"""The explorer: a page for any dataset, to select, leave out, click and ask what if."""
