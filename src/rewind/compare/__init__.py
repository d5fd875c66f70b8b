"""How do two runs differ, where did they part, and why?"""
