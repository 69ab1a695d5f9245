"""Java behind the language seam: JUnit tests read (``language``), placed, and run (``running``)."""
