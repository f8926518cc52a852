"""`make calibrate`: how often answers are wrong, counted on what is drawn from a planted truth."""
