"""Laws of efficiency and what they predict."""
