"""Unix sockets: listen, accept fairly, exchange lines, and know the peer."""
