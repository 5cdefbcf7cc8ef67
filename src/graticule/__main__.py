"""`python -m graticule` is the command `graticule`."""

from graticule.cli.main import main

main()
