"""The array: processing elements, each with the weights of its own kernel."""
