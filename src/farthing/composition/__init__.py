"""One module per theorem; the operator engine; the chooser."""
