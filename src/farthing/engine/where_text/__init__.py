"""Conditions as text: read into filters, written from them, never passed on."""
