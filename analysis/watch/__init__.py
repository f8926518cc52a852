"""Did it change? Two samples, the sessions of years, a reference that is run again, nodes beside
each other.
"""
