"""What several notebooks or commands need of one experiment, and mathematics with own tests."""
