"""`li2025.thm4.6`: The trained net against C f_FA on the sphere."""
