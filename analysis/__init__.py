"""Turn raw transcripts into datasets, models, verdicts and figures."""
