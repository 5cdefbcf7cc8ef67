"""The workflows of the package: every YAML file beside this one."""
