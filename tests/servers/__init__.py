"""Real servers that tests start on this machine, one module each, and what breaks single requests on the way to one."""
