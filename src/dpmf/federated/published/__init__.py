"""The protocol of Hua, Xia and Zhong (2015), as published."""
