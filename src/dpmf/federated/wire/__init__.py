"""What both protocols are built on: ring elements and their masks, sealed channels, the encoding of messages."""
