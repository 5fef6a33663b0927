"""Names that running bridges of version 0.1.0 use after an upgrade."""
