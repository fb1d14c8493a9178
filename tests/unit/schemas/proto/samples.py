"""Files of Protobuf, and what its own compiler makes of them."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

PROTO3 = """
// A comment; and /* another */ one.
syntax = "proto3";
package a.b;

import public "other/types.proto";
import "google/protobuf/timestamp.proto";

option java_package = "org.\\"x\\"";
option java_multiple_files = true;
option optimize_for = CODE_SIZE;

message Order {
  option deprecated = true;
  reserved 20 to 22, 30, 1000 to max;
  reserved "old", "older";
  string name = 1 [json_name = "n"];
  repeated int32 counts = 2 [packed = false];
  optional sint64 maybe = 3;
  map<string, Inner> inners = 4;
  map<int32, double> by_number = 5;
  oneof choice { Inner one = 6; .a.b.Order.Kind two = 7; }
  google.protobuf.Timestamp at = 8;
  types.Point point = 9;
  Kind kind = 10;
  bytes message = 11;
  Order.Inner.Deep deep = 12;
  message Inner { message Deep { Order top = 1; } Deep deep = 1; }
  enum Kind { option allow_alias = true; NONE = 0; ANY = 0; LOW = -5 [deprecated = true]; HIGH = 0x10; }
}
enum Top { reserved 5 to max; ZERO = 0; }
service Orders {
  rpc Get (Order) returns (stream Order.Inner) { option idempotency_level = NO_SIDE_EFFECTS; }
  rpc Put (stream Order) returns (Order);
}
"""
OTHER = 'syntax = "proto3"; package a.types; message Point { int32 x = 1; int32 y = 2; }'
PROTO2 = """
syntax = "proto2";
message Old {
  required string name = 1 [default = "a\\nb"];
  optional int32 number = 2 [default = -7, deprecated = true];
  optional E e = 3 [default = B];
  repeated fixed64 many = 4 [packed = true];
  extensions 100 to 199, 500;
  enum E { A = 1; B = 2; }
  extend Old { optional bool inside = 100; }
}
extend Old { optional string more = 101; }
"""
EDITION = """
edition = "2023";
package a;
option features.repeated_field_encoding = EXPANDED;
option features.utf8_validation = NONE;
option java_package = "b";
message New {
  reserved old, older;
  reserved 20, 30 to max;
  option features.json_format = LEGACY_BEST_EFFORT;
  int32 implicit = 1 [features.field_presence = IMPLICIT, deprecated = true];
  string required = 2 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 packed = 3 [features.repeated_field_encoding = PACKED];
  repeated int32 expanded = 4;
  New inner = 5 [features.message_encoding = DELIMITED];
  Kind kind = 6;
  oneof choice { int32 one = 7; }
  enum Kind { option features.enum_type = CLOSED; reserved OLD; reserved 5; LOW = 1; }
}
"""


def compiled(text: str, others: Mapping[str, str] | None = None) -> FileDescriptorProto | None:
    """What protoc makes of a file; None when it refuses it."""
    with tempfile.TemporaryDirectory() as directory:
        for path, content in {"default.proto": text, **(others or {})}.items():
            target = Path(directory, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        out = Path(directory, "out")
        # In a process of its own: it logs from native code, and what ends it must not end the tests.
        done = subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{directory}",
                               f"-I{files('grpc_tools') / '_proto'}", f"--descriptor_set_out={out}", "default.proto"],
                              capture_output=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        return None if done.returncode else FileDescriptorSet.FromString(out.read_bytes()).file[0]
