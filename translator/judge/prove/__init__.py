"""Whether a Gluon kernel computes what its source computes: for every size and all data of the contract, by terms and induction."""
