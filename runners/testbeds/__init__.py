"""The testbeds, which execute commands: one module for each kind."""
