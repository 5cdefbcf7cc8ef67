"""The outputs of a job, of whatever kind: staged while it runs, promoted and catalogued as one when it is done."""
