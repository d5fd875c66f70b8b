"""Google Gemini, at AI Studio, on Vertex AI and behind Code Assist."""
