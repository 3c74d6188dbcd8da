"""Questions as SQL statements: keys and conditions as expressions, units limited before anything
is counted (bounding: counts; measuring: totals and weights), and the statement with its parameters.
"""
