"""Run a recorded command again and go live at one step."""
