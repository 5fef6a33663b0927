"""Start and stop the daemon, and run it as a service of systemd or launchd."""
