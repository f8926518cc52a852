"""What is kept of a campaign: its plan, its journal and transcripts, and the errors that people are
shown.
"""
