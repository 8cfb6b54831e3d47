"""BibTeX of what was used, so that nobody has to look for it."""

from typing import Any

from temperance.methods.methods import METHODS, MOVE_REFERENCES
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
    method, move = tree.attrs.get("method", ""), tree.attrs.get("move", "")
    keys = list(METHODS[method].references) if method in METHODS else []
    keys += [key for name, found in MOVE_REFERENCES.items() if name in move for key in found]
    return "\n\n".join(REFERENCES[key] for key in dict.fromkeys(keys))
