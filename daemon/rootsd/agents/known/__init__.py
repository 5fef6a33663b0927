"""One module for each agent. See `rootsd.agents`."""
