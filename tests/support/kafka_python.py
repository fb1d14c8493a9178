"""For tests with kafka-python, one of the peers: it leaves sockets to the garbage collector."""

import pytest

KAFKA_PYTHON = (pytest.mark.usefixtures("kafka_python_let_go"),
                pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
