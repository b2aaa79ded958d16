"""Which protocol to take, how many users, and which epsilon, before anybody is asked."""
