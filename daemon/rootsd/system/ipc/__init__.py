"""Listen, connect, and exchange messages over Unix sockets."""
