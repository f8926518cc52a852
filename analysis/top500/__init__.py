"""TOP500's list files: from bytes in any of their forms to one dataset of systems."""
