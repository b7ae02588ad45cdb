"""`li2025.deep_story`: activation, labels and adversarial training in one deep net."""
