"""The command line: what people touch; no arithmetic."""
