"""`coset completion`: a script with which a shell completes commands, options and values."""

from __future__ import annotations

import click

from coset.commands.options import SUCCESS

VARIABLE = "_COSET_COMPLETE"  # with which the script asks; click answers it


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script that completes commands, options and their values in SHELL.

    For bash write it to ~/.local/share/bash-completion/completions/coset, for zsh to a file _coset in a folder of $fpath, for fish to
    ~/.config/fish/completions/coset.fish.
    """
    from click.shell_completion import get_completion_class

    completing = get_completion_class(shell)
    assert completing is not None
    root = click.get_current_context().find_root().command
    click.echo(completing(root, {}, "coset", VARIABLE).source(), nl=False)
    return SUCCESS
