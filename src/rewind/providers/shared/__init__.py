"""What the packages of several APIs share."""
