"""What a run tells, in pieces that a method's report is composed of."""
