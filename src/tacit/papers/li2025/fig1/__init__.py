"""`li2025.fig1`: Five clusters, two boundaries."""
