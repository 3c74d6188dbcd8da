"""Questions as one statement: keys, conditions, bounded histograms, bound parameters."""
