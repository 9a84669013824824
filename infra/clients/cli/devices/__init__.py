"""`kho devices`: register devices, call their tools, watch them, and simulate a fleet."""
