"""A program upon Spark Connect: reads a topic, writes it on, as a batch and as a stream; what it saw, as JSON.

Session and data source are the ordinary ones but for `remote`. Run as: connect_program.py BROKERS FROM TO CHECKPOINT.
"""

import json
import sys

from pyspark.sql import SparkSession


def main(brokers, source, target, checkpoint):
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    kafka = {"kafka.bootstrap.servers": brokers}
    reading = {**kafka, "subscribe": source, "startingOffsets": "earliest"}
    writing = {**kafka, "topic": target}
    rows = spark.read.format("headrace").options(**reading).load()
    seen = {"kind": type(spark).__module__, "columns": rows.columns, "batch": rows.count()}
    rows.select("key", "value").write.format("headrace").options(**writing).mode("append").save()
    stream = spark.readStream.format("headrace").options(**reading).load().select("key", "value")
    query = stream.writeStream.format("headrace").options(**writing).option("checkpointLocation", checkpoint)
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    seen["batches"] = [int(report["numInputRows"]) for report in query.recentProgress if report["numInputRows"]]
    try:
        spark.read.format("headrace").options(**kafka).option("subscrib", source).load().count()
    except Exception as error:
        seen["refusal"] = str(error)
    print(json.dumps(seen))
    spark.stop()


main(*sys.argv[1:])
