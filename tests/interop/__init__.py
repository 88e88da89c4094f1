"""Tests against real Apache Hudi: it writes the tables, and it reads, changes and checks what we left behind."""
