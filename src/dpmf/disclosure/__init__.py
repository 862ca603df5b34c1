"""What others should be told about a release: a label for people, and documents in the forms that others ask for."""
