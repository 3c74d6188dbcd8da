"""Where rows live: one module for each engine, and what they have in common."""
