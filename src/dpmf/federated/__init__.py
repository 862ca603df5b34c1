"""An untrusted recommender: ratings and profiles stay with the people they belong to, and only masked sums leave.

Two protocols stand side by side: `published` is that of Hua, Xia and Zhong (2015), `certified` comes with a proof. Each
has the same parties: `user`, `recommender` and `third_party` are state machines that take a message and return
messages, without network or clock. Below both is `wire`: ring elements, masks, sealed channels and the encoding of
messages. `simulate` runs either protocol with all its parties in one process.
"""

from dpmf.federated.simulate.report import report_of
from dpmf.federated.simulate.trial import Plan, Trial, plan_trial, run_trial

__all__ = ["Plan", "Trial", "plan_trial", "report_of", "run_trial"]
