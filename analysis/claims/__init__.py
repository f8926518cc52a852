"""The sources' claims: what each says, and what each kind of evidence says to it."""
