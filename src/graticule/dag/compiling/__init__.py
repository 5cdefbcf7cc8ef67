"""From YAML text to a graph, with every problem on the way."""
