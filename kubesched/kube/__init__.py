"""What Kubernetes defines and every wing needs: API objects, values such as quantities, CEL, and a client of the API server."""
