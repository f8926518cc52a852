"""Every number that prose may quote, as plain values in base units; the templates only format them."""
