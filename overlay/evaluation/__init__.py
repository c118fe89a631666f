"""How often a network is right on labelled images: data, accuracy, confusion matrix."""
