"""`min2024.thm2`: Near the average and near the centres: who is drawn in, who is pushed out."""
