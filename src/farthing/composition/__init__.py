"""One module per theorem; profiles by operators; `compose`, which takes the best that applies."""
