"""The term language: types, symbolic dims, ops, hash-consed terms, programs and what they mean."""
