"""Noisy counts and sums, of known labels and of labels that come from the data.

`conditional_intervals` states intervals for counts that were released because they are large.
"""
