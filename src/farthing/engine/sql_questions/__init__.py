"""Questions as SQL: read into queries and written from them, never passed on."""
