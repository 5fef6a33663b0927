"""What programs behind the wall may see, as data."""
