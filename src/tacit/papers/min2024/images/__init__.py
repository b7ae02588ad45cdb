"""PolyReLU nets on real images, shared by `fig3`, `fig4`, `fig6`, `table1` and `table1_strict`."""
