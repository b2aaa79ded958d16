"""Planning: which protocol to take, how many users, and which epsilon, before a collection."""
