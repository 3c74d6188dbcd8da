"""Noisy counts and sums, of known labels and of labels that come from the data."""
