"""Runs, tables and pictures."""
