"""Changes to the standard library that lead this process's connections to the gateway."""
