"""What protocols for ordered domains are made of: trees, intervals, estimates."""
