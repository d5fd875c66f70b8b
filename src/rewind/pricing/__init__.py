"""What a call costs, by a dated table of prices."""
