"""A seeded fuzz: one file of a table is damaged, one command runs over it, and what must never happen did not."""
