"""Drive benchmark tools and keep their exact output.

It needs only Python 3.9 and its standard library, so that this folder can be copied to a head node.
"""
