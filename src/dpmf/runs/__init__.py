"""Training runs and the figures reported about them."""
