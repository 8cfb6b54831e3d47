"""Sources with a slip each, which the tests of sources must reject."""

import numpy as np

from temperance.rows.source import ArrayRows, ZarrRows


class SourceThatLeavesRowsSorted(ArrayRows):
    """Gives rows in the order in which they are read and not in that of the places."""

    def take(self, places):
        return self.at(np.sort(places, axis=None)).reshape(*np.shape(places), *self.shape[1:])


class SourceThatReadsEverything(ArrayRows):
    """Right, and reads all rows for every batch."""

    def at(self, rows):
        return np.array(self.array)[rows]


class SourceThatCountsFromZeroInEveryGroup(ZarrRows):
    """Takes a row's number for its place in the group."""

    def at(self, rows):
        return super().at(np.arange(rows.size))
