"""When are two requests the same?"""
