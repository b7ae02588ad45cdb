"""`frei2023.every_kkt`: KKT points that the flow does not find, and what the theorems say of every one."""
