"""What every protocol is made of: channels, aggregates, estimates."""
