"""From transcripts to datasets: their variables and units, what makes a point of them, published
numbers.
"""
