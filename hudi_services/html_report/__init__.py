"""The state of a table as one HTML file: facts gathered, drawn as pictures without a script, put on a page."""
