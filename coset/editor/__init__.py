"""`coset language-server`: rule files in an editor. What is said there is what `coset check` and `coset fmt` say."""
