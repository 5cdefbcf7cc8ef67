"""The console: the page that people use in their browsers, as the gateway gives it out."""
