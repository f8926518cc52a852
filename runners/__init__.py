"""Drive benchmark tools and keep exactly what they said.

Standard library only and Python 3.9, so that this folder can be copied to a head node.
"""
