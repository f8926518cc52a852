"""The explorer: any dataset as a page in which one picks, leaves out, clicks and asks what if."""
