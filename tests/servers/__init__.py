"""The servers that tests start for themselves, each on a free port of this machine."""
