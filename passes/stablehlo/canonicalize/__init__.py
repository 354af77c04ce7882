"""Passes that keep every bit of the results and make the program smaller: local rules, folding, common
subexpressions, dead code. What flows in is any legal StableHLO; in what flows out, things that can be said in
several ways are said in one."""
