"""Deep nets on images: clean and adversarial training, on a GPU as one recorded step."""
