"""Speed: the engine against the machine's own limit and against peers."""
