"""Every call of the admin client: what the areas have, in one class, and how a face signs it (decision 0036).

It must not know the faces. Read next: `client.admin.admin_area`, or the area that one looks for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.client.admin.acl_calls import AclCalls
from headrace.client.admin.cluster_calls import ClusterCalls
from headrace.client.admin.config_calls import ConfigCalls
from headrace.client.admin.group_calls import GroupCalls
from headrace.client.admin.offset_calls import OffsetCalls
from headrace.client.admin.open_transaction_calls import OpenTransactionCalls
from headrace.client.admin.partition_calls import PartitionCalls
from headrace.client.admin.share_group_calls import ShareGroupCalls
from headrace.client.admin.topic_calls import TopicCalls
from headrace.client.admin.user_calls import UserCalls

__all__ = ["AdminCalls", "signed"]

_C = TypeVar("_C", bound=Callable[..., Any])
_BY_KEY = re.compile(r"ByKey\[(\w+), (.+?)\](?= \||$)")
_SINGLE = re.compile(r"Single\[(.+)\](?= \||$)")


class AdminCalls(TopicCalls, PartitionCalls, ConfigCalls, AclCalls, GroupCalls, OffsetCalls, ShareGroupCalls,
                 ClusterCalls, OpenTransactionCalls, UserCalls):
    """Every call.

    Args:
        core: metadata and connections.
    """


def signed(method: _C, call: Callable[..., Any], one: str, future: str = "") -> _C:
    """Give a face's method the name, documentation and signature of the call that it makes.

    Args:
        method: of the face.
        call: of an area.
        one: what stands around the type of a single result, as in ``Future[{}]``.
        future: what stands around the type of each of several results.
    """
    told = inspect.signature(call)
    returns = _SINGLE.sub(lambda found: one.format(found[1]), str(told.return_annotation))
    returns = _BY_KEY.sub(lambda found: f"dict[{found[1]}, {future.format(found[2])}]", returns)
    shown: Any = method
    shown.__name__, shown.__doc__, shown.__module__ = call.__name__, call.__doc__, call.__module__
    shown.__signature__ = told.replace(return_annotation=returns)
    shown.__annotations__ = {**{name: each.annotation for name, each in told.parameters.items() if name != "self"},
                             "return": returns}
    return method
