"""The language of templates and conditions: what a parsed expression means, within bounds."""
