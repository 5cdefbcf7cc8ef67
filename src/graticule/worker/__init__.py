"""The process that runs handlers: consume, execute, report. It never decides anything."""
