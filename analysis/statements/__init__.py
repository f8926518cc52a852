"""What a notebook says and shows: statements, tables, figures, and the roles that its metadata give
it.
"""
