"""Files and folders: private ones, the lock of a state folder, and repositories by their names."""
