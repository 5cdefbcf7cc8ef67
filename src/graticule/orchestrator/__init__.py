"""The loop: claim, advance, watch, recover."""
