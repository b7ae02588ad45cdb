"""Attacks within a ball of given radius: from several starts, best so far kept."""
