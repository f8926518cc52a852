"""What the TOML files of data/ say, as classes: campaigns, testbeds, networks, and how a campaign
becomes a plan.

Each file is read once, checked by pydantic, and refused with all of its faults. A plan, what
travels to nodes and what runs in a job know nothing of this package.
"""
