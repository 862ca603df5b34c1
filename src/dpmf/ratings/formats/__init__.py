"""Readers, one module for each layout that ratings come in."""
