"""Run a campaign's trials: in a session of this machine, in a Slurm job; check a testbed."""
