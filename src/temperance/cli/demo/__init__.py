"""Questions with known answers, asked of several samplers: `temperance demo`.

One is about a hundred rows (few_rows), where ordinary samplers miss a mode; the other about 200,000
(many_rows), where every look at all of them costs.
"""

from temperance.cli.demo.few_rows import problem

__all__ = ["problem"]
