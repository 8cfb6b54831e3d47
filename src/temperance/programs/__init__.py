"""How functions become compiled programs, and the numbers and the scope that they run with."""
