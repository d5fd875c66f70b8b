"""What should happen to this call?"""
