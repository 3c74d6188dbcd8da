"""What a mechanism promises (`kinds`), and the worst case of each kind (`losses`)."""
