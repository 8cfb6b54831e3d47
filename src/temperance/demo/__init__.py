"""Questions with known answers, asked of several samplers: `temperance demo`.

    few_rows    two modes, a hundred rows: ordinary samplers miss one
    many_rows   two modes, 200,000 rows: every look at all of them costs
    asking      how samplers are asked, and what a person should make of their answers
"""

from temperance.demo.few_rows import problem

__all__ = ["problem"]
