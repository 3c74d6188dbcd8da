"""Ball arithmetic, directed rounding, convex functions on a grid, convolution, searches."""
