"""What one API's bodies mean: pure functions over recorded bytes."""
