"""Git directories behind the wall: what in them runs or is obeyed outside."""
