"""What partners see of a gateway under load: `make load`."""
