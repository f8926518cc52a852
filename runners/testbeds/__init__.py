"""Where commands are executed: one module for each kind of testbed."""
