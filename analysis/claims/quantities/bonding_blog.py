"""The quantities that the bonding blog's claims are about: each from the studies that there are."""
