"""The pack: one append-only file per session with every body."""
