"""`li2025.thmD`: No bias makes averaging robust; decoupling is."""
