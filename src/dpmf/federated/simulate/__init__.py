"""All parties in one process: who is online, and what travels."""
