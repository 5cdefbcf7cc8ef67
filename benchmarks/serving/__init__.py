"""The services beside plain TiTiler and plain TiPG: the same data, the same requests, the same run."""
