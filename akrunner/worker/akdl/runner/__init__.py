"""What a script is given, and how it gives back."""
