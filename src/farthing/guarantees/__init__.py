"""What a mechanism promises, and in `losses` what is known about the worst case of each kind."""
