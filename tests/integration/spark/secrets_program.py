"""A program that gives secrets to reads and writes and has Spark tell all that it can: for `test_secrets_stay_hidden`.

Run as: secrets_program.py REGISTRY FROM TO DIRECTORY, with the client's properties and the secrets in the environment.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

REDACTED = "(?i)password|passphrase|secret|token|access[.]?key|user[.]info|jaas|oauthbearer[.]config|[.]pem|url"
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n%ex
"""


def session(directory):
    (directory / "events").mkdir()
    logging = directory / "log4j2.properties"
    logging.write_text(LOGGING.format(file=directory / "driver.log"))
    builder = SparkSession.builder.master("local[2]").appName("secrets")
    for name, value in {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.eventLog.compress": "false", "spark.sql.shuffle.partitions": "2",
        "spark.sql.redaction.options.regex": REDACTED,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(registry, source, target, directory):
    directory = Path(directory)
    spark = session(directory)
    kafka = {
        **{f"kafka.{name}": value for name, value in json.loads(os.environ["CLIENT"]).items()},
        "kafka.ssl.key.password": os.environ["SECRET_KEY"],
        "schema.registry.url": registry, "schema.registry.basic.auth.user.info": os.environ["SECRET_REGISTRY"],
        "value.format": "avro",
    }
    rows = spark.range(20).select(F.struct(F.col("id").alias("number")).alias("value"))
    rows.write.format("headrace").options(**kafka).option("topic", source).mode("append").save()
    read = spark.read.format("headrace").options(**kafka).option("subscribe", source).load()
    told = [str(read.count()), read._jdf.queryExecution().toString()]
    explain = spark._jvm.PythonSQLUtils.explainString
    told += [explain(read._jdf.queryExecution(), mode) for mode in ("extended", "codegen", "cost", "formatted")]

    stream = spark.readStream.format("headrace").options(**kafka).option("subscribe", source)
    stream = stream.option("startingOffsets", "earliest").load().select("value")
    told += [stream._jdf.queryExecution().toString(), explain(stream._jdf.queryExecution(), "extended")]
    try:
        stream.selectExpr("CAST(value AS INT)")  # Spark's complaint has the plan with the source's options
    except Exception as error:
        told.append(str(error))
    query = stream.writeStream.format("headrace").options(**kafka).option("topic", target)
    query = query.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    told += [report.json for report in query.recentProgress] + [json.dumps(query.status), str(query.exception())]
    told.append(query._jsq.explainInternal(True))
    for wrong in ({"subscribe": source, "subscrib": "x"}, {"subscribe": "none"}):
        try:
            spark.read.format("headrace").options(**kafka, **wrong).load().count()
        except Exception as error:
            told.append(str(error))
    (directory / "told.txt").write_text("\n".join(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
