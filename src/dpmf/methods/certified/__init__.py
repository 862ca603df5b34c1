"""What every certified method is made of: questions, answers, and the run that accounts for them."""
