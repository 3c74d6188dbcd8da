"""Who may come in: tokens, and what a caller is once inside."""
