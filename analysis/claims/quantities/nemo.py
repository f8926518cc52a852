"""The quantities that the Nemo switch tests's claims are about: each from the studies that there are."""
