"""What both protocols send: ring elements behind masks, sealed channels, messages."""
