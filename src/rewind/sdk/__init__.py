"""What a program imports: sessions, tools and notes of the process it runs in."""
