"""What devices say to each other: which ops are collectives, and the forms in which the runtime does them."""
