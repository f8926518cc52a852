"""The report: notebooks are run, and their sections put together and published."""
