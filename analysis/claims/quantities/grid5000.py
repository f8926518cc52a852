"""The quantities that the Grid'5000 experiment's claims are about: each from the studies that there are."""
