"""``rewind demo``: a real agent, a scripted provider on this machine, and the main job from end to end."""
