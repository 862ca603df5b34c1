"""Figures of Hua, Xia and Zhong (2015), "Differentially private matrix factorization"."""
