"""BibTeX of what was used, so that nobody has to look for it."""

from typing import Any

from temperance.methods import METHODS, MOVE_REFERENCES

REFERENCES = {
    "geyer1991": """@inproceedings{geyer1991,
  author = {Geyer, Charles J.},
  title = {{Markov} chain {Monte} {Carlo} maximum likelihood},
  booktitle = {Computing Science and Statistics: Proceedings of the 23rd Symposium on the
               Interface},
  pages = {156--163},
  year = {1991}
}""",
    "syed2022": """@article{syed2022,
  author = {Syed, Saifuddin and Bouchard-C{\\^o}t{\\'e}, Alexandre and Deligiannidis, George
            and Doucet, Arnaud},
  title = {Non-reversible parallel tempering: a scalable highly parallel {MCMC} scheme},
  journal = {Journal of the Royal Statistical Society: Series B},
  volume = {84},
  number = {2},
  pages = {321--350},
  year = {2022}
}""",
    "shirts2008": """@article{shirts2008,
  author = {Shirts, Michael R. and Chodera, John D.},
  title = {Statistically optimal analysis of samples from multiple equilibrium states},
  journal = {The Journal of Chemical Physics},
  volume = {129},
  number = {12},
  pages = {124105},
  year = {2008}
}""",
    "xie2011": """@article{xie2011,
  author = {Xie, Wangang and Lewis, Paul O. and Fan, Yu and Kuo, Lynn and Chen, Ming-Hui},
  title = {Improving marginal likelihood estimation for {Bayesian} phylogenetic model selection},
  journal = {Systematic Biology},
  volume = {60},
  number = {2},
  pages = {150--160},
  year = {2011}
}""",
    "neal1996": """@article{neal1996,
  author = {Neal, Radford M.},
  title = {Sampling from multimodal distributions using tempered transitions},
  journal = {Statistics and Computing},
  volume = {6},
  number = {4},
  pages = {353--366},
  year = {1996}
}""",
    "vandemeent2014": """@misc{vandemeent2014,
  author = {van de Meent, Jan-Willem and Paige, Brooks and Wood, Frank},
  title = {Tempering by subsampling},
  year = {2014},
  eprint = {1401.7145},
  archivePrefix = {arXiv}
}""",
    "kou2006": """@article{kou2006,
  author = {Kou, S. C. and Zhou, Qing and Wong, Wing Hung},
  title = {Equi-energy sampler with applications in statistical inference and statistical
           mechanics},
  journal = {The Annals of Statistics},
  volume = {34},
  number = {4},
  pages = {1581--1619},
  year = {2006}
}""",
    "neal2010": """@techreport{neal2010,
  author = {Neal, Radford M.},
  title = {{MCMC} using ensembles of states for problems with fast and slow variables such as
           {Gaussian} process regression},
  institution = {Department of Statistics, University of Toronto},
  year = {2010},
  eprint = {1101.0387},
  archivePrefix = {arXiv}
}""",
    "neal2004": """@techreport{neal2004,
  author = {Neal, Radford M.},
  title = {Taking bigger {Metropolis} steps by dragging fast variables},
  institution = {Department of Statistics, University of Toronto},
  number = {0411},
  year = {2004}
}""",
    "lewis2002": """@article{lewis2002,
  author = {Lewis, Antony and Bridle, Sarah},
  title = {Cosmological parameters from {CMB} and other data: A {Monte} {Carlo} approach},
  journal = {Physical Review D},
  volume = {66},
  pages = {103511},
  year = {2002}
}""",
    "liu2000": """@article{liu2000,
  author = {Liu, Jun S. and Liang, Faming and Wong, Wing Hung},
  title = {The multiple-try method and local optimization in {Metropolis} sampling},
  journal = {Journal of the American Statistical Association},
  volume = {95},
  pages = {121--134},
  year = {2000}
}""",
    "leman2009": """@article{leman2009,
  author = {Leman, Scotland C. and Chen, Yuguo and Lavine, Michael},
  title = {The multiset sampler},
  journal = {Journal of the American Statistical Association},
  volume = {104},
  pages = {1029--1041},
  year = {2009}
}""",
    "metropolis1953": """@article{metropolis1953,
  author = {Metropolis, Nicholas and Rosenbluth, Arianna W. and Rosenbluth, Marshall N.
            and Teller, Augusta H. and Teller, Edward},
  title = {Equation of state calculations by fast computing machines},
  journal = {The Journal of Chemical Physics},
  volume = {21},
  number = {6},
  pages = {1087--1092},
  year = {1953}
}""",
    "roberts1996": """@article{roberts1996,
  author = {Roberts, Gareth O. and Tweedie, Richard L.},
  title = {Exponential convergence of {Langevin} distributions and their discrete approximations},
  journal = {Bernoulli},
  volume = {2},
  number = {4},
  pages = {341--363},
  year = {1996}
}""",
    "duane1987": """@article{duane1987,
  author = {Duane, Simon and Kennedy, A. D. and Pendleton, Brian J. and Roweth, Duncan},
  title = {Hybrid {Monte} {Carlo}},
  journal = {Physics Letters B},
  volume = {195},
  number = {2},
  pages = {216--222},
  year = {1987}
}""",
    "neal2011": """@incollection{neal2011,
  author = {Neal, Radford M.},
  title = {{MCMC} using {Hamiltonian} dynamics},
  booktitle = {Handbook of {Markov} Chain {Monte} {Carlo}},
  publisher = {Chapman and Hall/CRC},
  pages = {113--162},
  year = {2011}
}""",
    "hoffman2014": """@article{hoffman2014,
  author = {Hoffman, Matthew D. and Gelman, Andrew},
  title = {The {No-U-Turn} sampler: adaptively setting path lengths in {Hamiltonian} {Monte}
           {Carlo}},
  journal = {Journal of Machine Learning Research},
  volume = {15},
  pages = {1593--1623},
  year = {2014}
}""",
    "neal2003": """@article{neal2003,
  author = {Neal, Radford M.},
  title = {Slice sampling},
  journal = {The Annals of Statistics},
  volume = {31},
  number = {3},
  pages = {705--767},
  year = {2003}
}""",
    "murray2010": """@inproceedings{murray2010,
  author = {Murray, Iain and Adams, Ryan Prescott and MacKay, David J. C.},
  title = {Elliptical slice sampling},
  booktitle = {Proceedings of the 13th International Conference on Artificial Intelligence and
               Statistics},
  pages = {541--548},
  year = {2010}
}""",
    "blackjax2024": """@misc{blackjax2024,
  author = {Cabezas, Alberto and Corenflos, Adrien and Lao, Junpeng and Louf, R{\\'e}mi},
  title = {{BlackJAX}: composable {Bayesian} inference in {JAX}},
  year = {2024},
  eprint = {2402.10797},
  archivePrefix = {arXiv}
}""",
    "li2017": """@misc{li2017,
  author = {Li, Dangna and Wong, Wing H.},
  title = {Mini-batch tempered {MCMC}},
  year = {2017},
  eprint = {1707.09705},
  archivePrefix = {arXiv}
}""",
    "ceperley1999": """@article{ceperley1999,
  author = {Ceperley, D. M. and Dewing, M.},
  title = {The penalty method for random walks with uncertain energies},
  journal = {The Journal of Chemical Physics},
  volume = {110},
  number = {20},
  pages = {9812--9820},
  year = {1999}
}""",
    "andrieu2009": """@article{andrieu2009,
  author = {Andrieu, Christophe and Roberts, Gareth O.},
  title = {The pseudo-marginal approach for efficient {Monte} {Carlo} computations},
  journal = {The Annals of Statistics},
  volume = {37},
  number = {2},
  pages = {697--725},
  year = {2009}
}""",
    "zhang2020": """@inproceedings{zhang2020,
  author = {Zhang, Ruqi and Cooper, A. Feder and De Sa, Christopher},
  title = {Asymptotically optimal exact minibatch {Metropolis}-{Hastings}},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {33},
  year = {2020}
}""",
    "christen2005": """@article{christen2005,
  author = {Christen, J. Andr{\\'e}s and Fox, Colin},
  title = {{Markov} chain {Monte} {Carlo} using an approximation},
  journal = {Journal of Computational and Graphical Statistics},
  volume = {14},
  number = {4},
  pages = {795--810},
  year = {2005}
}""",
    "graham2017": """@inproceedings{graham2017,
  author = {Graham, Matthew M. and Storkey, Amos J.},
  title = {Continuously tempered {Hamiltonian} {Monte} {Carlo}},
  booktitle = {Proceedings of the 33rd Conference on Uncertainty in Artificial Intelligence},
  year = {2017}
}""",
    "gelman1998": """@article{gelman1998,
  author = {Gelman, Andrew and Meng, Xiao-Li},
  title = {Simulating normalizing constants: from importance sampling to bridge sampling to path
           sampling},
  journal = {Statistical Science},
  volume = {13},
  number = {2},
  pages = {163--185},
  year = {1998}
}""",
    "marinari1992": """@article{marinari1992,
  author = {Marinari, Enzo and Parisi, Giorgio},
  title = {Simulated tempering: a new {Monte} {Carlo} scheme},
  journal = {Europhysics Letters},
  volume = {19},
  number = {6},
  pages = {451--458},
  year = {1992}
}""",
    "carlson2016": """@inproceedings{carlson2016,
  author = {Carlson, David E. and Stinson, Patrick and Pakman, Ari and Paninski, Liam},
  title = {Partition functions from {Rao}-{Blackwellized} tempered sampling},
  booktitle = {Proceedings of the 33rd International Conference on Machine Learning},
  year = {2016}
}""",
    "geyer1995": """@article{geyer1995,
  author = {Geyer, Charles J. and Thompson, Elizabeth A.},
  title = {Annealing {Markov} chain {Monte} {Carlo} with applications to ancestral inference},
  journal = {Journal of the American Statistical Association},
  volume = {90},
  number = {431},
  pages = {909--920},
  year = {1995}
}""",
    "neal2001": """@article{neal2001,
  author = {Neal, Radford M.},
  title = {Annealed importance sampling},
  journal = {Statistics and Computing},
  volume = {11},
  number = {2},
  pages = {125--139},
  year = {2001}
}""",
    "grosse2015": """@misc{grosse2015,
  author = {Grosse, Roger B. and Ghahramani, Zoubin and Adams, Ryan P.},
  title = {Sandwiching the marginal likelihood using bidirectional {Monte} {Carlo}},
  year = {2015},
  eprint = {1511.02543},
  archivePrefix = {arXiv}
}""",
    "obermeyer2014": """@inproceedings{obermeyer2014,
  author = {Obermeyer, Fritz and Glidden, Jonathan and Jonas, Eric},
  title = {Scaling nonparametric {Bayesian} inference via subsample-annealing},
  booktitle = {Proceedings of the 17th International Conference on Artificial Intelligence and
               Statistics},
  series = {JMLR: W&CP},
  volume = {33},
  year = {2014}
}""",
    "mansinghka2009": """@inproceedings{mansinghka2009,
  author = {Mansinghka, Vikash K. and Jonas, Eric and Petschulat, Cap and Cronin, Beau
            and Shafto, Patrick and Tenenbaum, Joshua B.},
  title = {Cross-categorization: a method for discovering multiple overlapping clusterings},
  booktitle = {Nonparametric {Bayes} Workshop at {NIPS}},
  year = {2009}
}""",
    "pitman1997": """@article{pitman1997,
  author = {Pitman, Jim and Yor, Marc},
  title = {The two-parameter {Poisson}-{Dirichlet} distribution derived from a stable
           subordinator},
  journal = {The Annals of Probability},
  volume = {25},
  number = {2},
  pages = {855--900},
  year = {1997}
}""",
    "neal2000": """@article{neal2000,
  author = {Neal, Radford M.},
  title = {{Markov} chain sampling methods for {Dirichlet} process mixture models},
  journal = {Journal of Computational and Graphical Statistics},
  volume = {9},
  number = {2},
  pages = {249--265},
  year = {2000}
}""",
}
# Of the models of tables, by name.
TABLE_REFERENCES = {
    "crosscat": ("obermeyer2014", "mansinghka2009", "pitman1997", "neal2000"),
    "pitman-yor": ("obermeyer2014", "pitman1997", "neal2000"),
    "dirichlet-process": ("obermeyer2014", "neal2000"),
}


def cite(tree: Any) -> str:
    """BibTeX of the method and move that made `tree`, or of a model of `temperance.crosscat`."""
    table = getattr(tree, "model", None)
    if isinstance(table, str) and table in TABLE_REFERENCES:
        return "\n\n".join(REFERENCES[key] for key in TABLE_REFERENCES[table])
    method, move = tree.attrs.get("method", ""), tree.attrs.get("move", "")
    keys = list(METHODS[method].references) if method in METHODS else []
    keys += [key for name, found in MOVE_REFERENCES.items() if name in move for key in found]
    return "\n\n".join(REFERENCES[key] for key in dict.fromkeys(keys))
