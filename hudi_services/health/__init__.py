"""Whether a table is all right: facts about it, and checks of these facts. Nothing here changes a table."""
