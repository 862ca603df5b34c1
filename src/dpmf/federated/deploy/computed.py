"""What follows from the settings of an agreement: rounds, noise, and the length of every message."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Inquiry
from dpmf.federated.wire.channels import OVERHEAD
from dpmf.federated.wire.masks import SEED_BYTES
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise


def computed(agreement: Agreement) -> dict[str, Any]:
    """Return what follows from an agreement's settings, in JSON values."""
    mechanism = Mechanism(agreement.events, Noise(), agreement.crowd.n_shares)
    multipliers = {event.what: event for event in agreement.events}
    rounds = []
    for number, one in enumerate(agreement.rounds):
        told = agreement.told(number)
        dummies = {part.name: np.full(part.shape, max(part.least, 0.0), part.dtype) for part in told}
        questions = []
        for question in agreement.questions(number, dummies):
            event, bound = multipliers[question.what], question.sensitivity(agreement.budget.neighbours)
            questions.append(
                {
                    "what": question.what,
                    "shape": list(question.shape),
                    "sensitivity": bound,
                    "noise_multiplier": event.noise_multiplier,
                    "sampling_rate": getattr(event, "sampling_rate", None),
                    "steps": mechanism.steps(question.what, bound),
                }
            )
        zeros = {part.name: np.zeros(part.shape, part.dtype) for part in told}
        ring, elements = agreement.ring(number), agreement.n_elements(number)
        asked = Inquiry(number, agreement.digest, bytes(SEED_BYTES), zeros).encoded(agreement)
        answered = Answer(number, np.zeros(elements, ring.dtype)).encoded(agreement)
        rounds.append(
            {
                "stage": one.stage,
                "ring_bytes": ring.n_bytes,
                "elements": elements,
                "bytes_down": len(asked) + OVERHEAD,
                "bytes_up": len(answered) + OVERHEAD,
                "told": [{**part._asdict(), "shape": list(part.shape)} for part in told],
                "questions": questions,
            }
        )
    return {
        "digest": agreement.digest.hex(),
        "configuration": agreement.method.configuration(),
        "n_shares": agreement.crowd.n_shares,
        "constants": agreement.script.constants(),
        "events": [event.to_json() for event in agreement.events],
        "rounds": rounds,
    }
