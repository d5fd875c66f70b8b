"""An exchange becomes a step; secrets end here."""
