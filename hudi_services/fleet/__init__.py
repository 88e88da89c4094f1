"""Many tables in one run: the list of them, what is due, what it costs and gains, and the limits of the run."""
