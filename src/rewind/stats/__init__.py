"""What calls cost, and what they add up to."""
