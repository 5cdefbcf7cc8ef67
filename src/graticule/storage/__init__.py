"""Where files are kept: one small protocol, and the places behind it."""
