"""Tests of the methods: what all of them must do (`test_contract*`), and a folder for what is specific to each."""
