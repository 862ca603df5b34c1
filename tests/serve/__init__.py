"""Tests of the page and the service."""
