"""What a mechanism promises: guarantees, brackets, conversions."""
