"""Every Python akrunner supports, with the newest and with the lowest versions of what it needs: scripts/versions."""
