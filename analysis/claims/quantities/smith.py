"""The quantities that the HPL paper's claims are about: each from the studies that there are."""
