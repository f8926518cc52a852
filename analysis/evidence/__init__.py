"""From a figure down to the raw transcripts that it rests on, and whether these are still what they were."""
