"""Simulating a protocol in one process: who is online, how many bytes travel, and how good the result is.

`population` and `traffic` are what simulations of both protocols are made of; `trial` and `report` run either of them
and describe the outcome.
"""
