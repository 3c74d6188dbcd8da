"""Runs that outlive a request: threads with records, and keys under which a request runs once."""
