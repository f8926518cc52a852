"""The quantities that the Beowulf topology study's claims are about: each from the studies that there are."""
