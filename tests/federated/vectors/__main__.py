"""Write the vectors again."""

from . import FILE, text

FILE.write_text(text())
