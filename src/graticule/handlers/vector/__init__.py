"""Vector handlers: from a file of features to a table of PostGIS.

`sources` reads a partner's file, `preparing` makes its features fit for a table, `examining` says what is in it,
`exports` makes files. The modules here register the handlers and import no GDAL: orchestrators load them to know what
there is.
"""
