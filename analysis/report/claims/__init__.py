"""The sources' claims, and the verdict of each kind of evidence on them."""
