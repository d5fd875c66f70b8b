"""Traces that rewind.Trace wrote, read back as sessions."""
