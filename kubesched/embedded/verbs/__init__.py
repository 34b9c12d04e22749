"""The verbs of the API: read, write, patch, delete and the subresources, with the meaning and the words of Kubernetes."""
