"""BibTeX of what was used, so that nobody has to look for it."""

from typing import Any

from temperance.methods import METHODS
from temperance.results.references import REFERENCES

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
    keys = tree.attrs.get("references")
    if keys is None:
        # Files of earlier versions name their method alone.
        method = METHODS.get(tree.attrs.get("method", ""))
        keys = "" if method is None else " ".join(method.references)
    return "\n\n".join(REFERENCES.get(key, key) for key in keys.split())
