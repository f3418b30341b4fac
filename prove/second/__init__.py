"""A second checker of certificates, written from `docs/certificates.md` and `docs/rules.md` alone."""
