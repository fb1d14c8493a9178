"""What tests of joint transactions share; `broker` is each file's own."""

import pytest

from headrace.client.joint.transaction_owner import TransactionOwner


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def owner(conf):
    made = TransactionOwner(conf)
    yield made
    made.close()
