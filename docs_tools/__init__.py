"""What the documentation site needs beside its pages: `mkdocs.yml` names each module as a hook."""
