"""`frei2023.beyond`: More clusters than a hyperplane can split, and separable data without clusters."""
