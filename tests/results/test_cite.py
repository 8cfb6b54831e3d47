"""Every paper that something names is there, under its own key."""

import pytest

import temperance as tp
from temperance.crosscat import CrossCat, DirichletProcessMixture, PitmanYorMixture
from temperance.methods import METHODS
from temperance.results.cite import TABLE_REFERENCES
from temperance.results.references import REFERENCES


def test_every_key_is_known():
    named = [key for method in METHODS.values() for key in method.references]
    named += [key for keys in TABLE_REFERENCES.values() for key in keys]
    assert set(named) <= set(REFERENCES)
    for key, entry in REFERENCES.items():
        assert entry.split("{")[1].startswith(key + ",")
        assert entry.count("{") == entry.count("}")


@pytest.mark.parametrize("model", [CrossCat, PitmanYorMixture, DirichletProcessMixture])
def test_models_of_tables_name_their_papers(model):
    found = tp.cite(model())
    assert "{obermeyer2014," in found
    assert ("{mansinghka2009," in found) == (model is CrossCat)
    assert ("{pitman1997," in found) == (model is not DirichletProcessMixture)
