"""The real tables: hospitals of the Dartmouth Atlas, and the network log of KDD Cup 1999.

Both lie in `tables` of the folder that --data or TEMPERANCE_DATA names. Of the hospitals' table the name is left out, and 63
real columns remain, to be standardised by their own mean and deviation as the bars set for them are. The log has 41 columns
and a label; columns of which more than six tenths are one value and the rest are measured, are that value's spike and a
measurement.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HOSPITAL, KDD = "tables/hospital.csv", "tables/kddcup.data_10_percent.gz"
# Column and kind, in the file's order.
KDD_KINDS = {
    "duration": "spike", "protocol_type": "categorical", "service": "categorical", "flag": "categorical",
    "src_bytes": "real", "dst_bytes": "spike", "land": "boolean", "wrong_fragment": "categorical",
    "urgent": "categorical", "hot": "count", "num_failed_logins": "count", "logged_in": "boolean",
    "num_compromised": "count", "root_shell": "boolean", "su_attempted": "categorical", "num_root": "count",
    "num_file_creations": "count", "num_shells": "count", "num_access_files": "count",
    "num_outbound_cmds": "count", "is_host_login": "boolean", "is_guest_login": "boolean", "count": "count",
    "srv_count": "count", "serror_rate": "spike", "srv_serror_rate": "spike", "rerror_rate": "spike",
    "srv_rerror_rate": "spike", "same_srv_rate": "spike", "diff_srv_rate": "spike",
    "srv_diff_host_rate": "spike", "dst_host_count": "count", "dst_host_srv_count": "count",
    "dst_host_same_srv_rate": "spike", "dst_host_diff_srv_rate": "spike",
    "dst_host_same_src_port_rate": "spike", "dst_host_srv_diff_host_rate": "spike",
    "dst_host_serror_rate": "spike", "dst_host_srv_serror_rate": "spike", "dst_host_rerror_rate": "spike",
    "dst_host_srv_rerror_rate": "spike",
}  # fmt: skip
LABEL = "label"


def read_hospital(data: Path) -> Any:
    """307 hospitals by 63 real columns, standardised."""
    import pandas as pd

    frame = pd.read_csv(data / HOSPITAL).drop(columns="NAME").astype(float)
    return (frame - frame.mean()) / frame.std(ddof=0)


def hospital_kinds(data: Path) -> dict[str, str]:
    with (data / HOSPITAL).open() as file:
        return dict.fromkeys(file.readline().strip().split(",")[1:], "real")


def read_kdd(data: Path, num_rows: int | None = None, seed: int = 0, label: bool = False) -> Any:
    """The network log, or as many of its rows by chance; the label is left out unless asked for."""
    import pandas as pd

    names = [*KDD_KINDS, LABEL]
    texts = {name: "str" for name, kind in KDD_KINDS.items() if kind == "categorical"}
    used = names if label else list(KDD_KINDS)
    frame = pd.read_csv(data / KDD, header=None, names=names, usecols=used, dtype=texts)
    return frame if num_rows is None else some_rows(frame, num_rows, seed)


def some_rows(frame: Any, num_rows: int, seed: int) -> Any:
    """Rows chosen by chance without repetition, in a random order."""
    chosen = np.random.default_rng(seed).permutation(len(frame))[:num_rows]
    return frame.iloc[chosen].reset_index(drop=True)


def split_rows(
    num_rows: int, seed: int, folds: int = 8
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and rows to be scored, of which there are one in `folds`, by chance."""
    order = np.random.default_rng(seed).permutation(num_rows)
    num_held_out = max(1, num_rows // folds)
    return np.sort(order[num_held_out:]), np.sort(order[:num_held_out])
