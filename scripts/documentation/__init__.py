"""The documentation as a site: the pages of docs/, and beside them the reference that is made from the code."""
