"""One proof from its beginning to its end: what the tests and the command both do."""

from pathlib import Path

from .engine import Prepared, Proof


def fault_of(proof: Proof, folder: Path) -> str:
    """The fault of a proof; "" if all rules are kept, every situation is reached and every break is refused.

    Parameters
    ----------
    proof
        What is to be proved.
    folder
        An empty folder.
    """
    (folder / "whole").mkdir()
    prepared = Prepared(proof, folder / "whole")
    for name, ask in prepared.questions():
        answer = ask()
        if not answer.passed:
            return f"{name}: {', '.join(answer.failed) or answer.text}"
    for k, broken in enumerate(proof.breaks):
        (folder / f"broken_{k}").mkdir()
        answer = Prepared(proof, folder / f"broken_{k}", broken).base(max(proof.steps, proof.reach))
        if not any(f"{rule}.".startswith(f"{broken.rule}.") for rule in answer.failed):
            return f"{broken.new}: must break {broken.rule}, broke {', '.join(answer.failed) or 'none'}"
    return ""
