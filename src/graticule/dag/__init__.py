"""How a job advances: compile, evaluate, templates, fan-out. Pure: no I/O, no clock, no randomness."""
