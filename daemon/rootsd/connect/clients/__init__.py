"""The clients that `rootsd connect` knows: one module for each. See `rootsd.connect.base`."""
