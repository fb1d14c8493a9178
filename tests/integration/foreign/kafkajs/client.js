// A Kafka client of kafkajs's that is told what to do: one JSON command a line comes in, one JSON answer a line goes out.
//
// An answer is {"ok": result} or {"error": {"code": Kafka's number or null, "message": text}}.

'use strict'

const { createHash, randomUUID } = require('node:crypto')
const { createInterface } = require('node:readline')
const { CompressionTypes, Kafka, logLevel, Partitioners } = require('kafkajs')
const { assigners } = require('./assigners')
const { install } = require('./codecs')
const adminOperations = require('./admin')

const PATIENCE_MS = 30_000
const SHOWN_BYTES = 4096
const CODECS = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
}
const ACKS = { 0: 0, 1: 1, all: -1 }
const members = new Map()

const connect = (command) => new Kafka({
  clientId: command.member ?? 'kafkajs', brokers: command.servers.split(','), logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 5, factor: 0, multiplier: 1.5 },
})

const bytes = (text) => (text === null ? null : Buffer.from(text, 'base64'))
const text = (data) => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'))

// kafkajs keeps headers as an object: names that repeat have a list.
function headersOf(record) {
  const headers = {}
  for (const { name, value } of record.headers) {
    (headers[name] ??= []).push(bytes(value))
  }
  return headers
}

function shown(topic, partition, message) {
  const { value } = message
  const headers = Object.entries(message.headers ?? {}).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map((each) => ({ name, value: text(each) })))
  const record = {
    topic, partition, offset: Number(message.offset), timestamp: Number(message.timestamp), key: text(message.key),
    value: text(value), headers,
  }
  if (value !== null && value.length > SHOWN_BYTES) {
    record.value = null
    record.digest = { size: value.length, sha256: createHash('sha256').update(value).digest('hex') }
  }
  return record
}

// Writes records and answers with the offset of each, in the order given.
async function produce(command) {
  const producer = connect(command).producer({
    idempotent: command.idempotent, createPartitioner: Partitioners.DefaultPartitioner,
    ...(command.idempotent ? { maxInFlightRequests: 1 } : {}),
  })
  await producer.connect()
  try {
    const written = await producer.send({
      topic: command.topic, acks: ACKS[command.acks], compression: CODECS[command.codec],
      messages: command.records.map((record) => ({
        partition: record.partition, key: bytes(record.key), value: bytes(record.value),
        timestamp: String(record.timestamp), headers: headersOf(record),
      })),
    })
    const next = new Map(written.map((part) => [part.partition, Number(part.baseOffset)]))
    return command.records.map(({ partition }) => {
      const offset = next.get(partition)
      next.set(partition, offset + 1)
      return offset ?? null
    })
  } finally {
    await producer.disconnect()
  }
}

// Reads so many records from the beginning, and commits them. There is no kafkajs consumer without a group.
async function consume(command) {
  const consumer = connect(command).consumer({
    groupId: command.group ?? `reader-${randomUUID()}`, maxWaitTimeInMs: 200, heartbeatInterval: 500,
    maxBytesPerPartition: 4 << 20,
  })
  await consumer.connect()
  const found = []
  try {
    await consumer.subscribe({ topics: command.topics, fromBeginning: true })
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${found.length} records of ${command.count}`)), PATIENCE_MS)
      consumer.on(consumer.events.CRASH, ({ payload }) => { if (!payload.restart) reject(payload.error) })
      consumer.run({
        eachBatch: async ({ batch }) => {
          found.push(...batch.messages.map((message) => shown(batch.topic, batch.partition, message)))
          if (found.length >= command.count) {
            clearTimeout(timer)
            resolve()
          }
        },
      }).catch(reject)
    })
    await consumer.stop()
  } finally {
    await consumer.disconnect()
  }
  return found
}

// Begins to take part in a group.
async function join(command) {
  const member = { held: {}, had: {}, values: [], failed: null, told: new Set() }
  const consumer = connect(command).consumer({
    groupId: command.group, sessionTimeout: command.session_ms ?? 10_000, heartbeatInterval: 200,
    rebalanceTimeout: 10_000, maxWaitTimeInMs: 200,
    partitionAssigners: assigners(command.assignor.split(','), () => member.had),
  })
  member.consumer = consumer
  members.set(command.member, member)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { member.held = member.had = payload.memberAssignment })
  consumer.on(consumer.events.REBALANCING, () => { member.held = {} })
  // It begins again by itself after what may pass, such as a coordinator that is still loading.
  consumer.on(consumer.events.CRASH, ({ payload }) => { if (!payload.restart) member.failed = payload.error })
  await consumer.connect()
  await consumer.subscribe({ topics: command.topics, fromBeginning: true })
  consumer.run({
    autoCommitInterval: 100,
    eachBatch: async ({ batch }) => { member.values.push(...batch.messages.map(({ value }) => text(value))) },
  }).catch((error) => { member.failed = error })
  return null
}

function memberOf(command) {
  const member = members.get(command.member)
  if (member.failed) {
    throw member.failed
  }
  return member
}

// The partitions that a member holds now.
async function assignment(command) {
  return Object.entries(memberOf(command).held)
    .flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition]))
    .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]))
}

// The values that a member has read.
const received = async (command) => memberOf(command).values

// The codes of what a member was refused. It is not told as a failure of the next operation then.
async function errors(command) {
  const member = members.get(command.member)
  if (member.failed) {
    member.told.add(codeOf(member.failed))
    member.failed = null
  }
  return [...member.told]
}

// Commits and says goodbye to the group; everything that the member has read.
async function leave(command) {
  const member = memberOf(command)
  members.delete(command.member)
  await member.consumer.stop()
  await member.consumer.disconnect()
  return member.values
}

const messagesOf = (records) => records.map((record) => ({
  partition: record.partition, key: bytes(record.key), value: bytes(record.value),
}))

async function transactional(command) {
  const producer = connect(command).producer({
    transactionalId: command.transactional_id, idempotent: true, maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  return producer
}

const end = (transaction, commit) => (commit ? transaction.commit() : transaction.abort())

// Writes records in a transaction, and ends it.
async function transact(command) {
  const producer = await transactional(command)
  try {
    const transaction = await producer.transaction()
    await transaction.send({ topic: command.topic, messages: messagesOf(command.records) })
    await end(transaction, command.commit)
  } finally {
    await producer.disconnect()
  }
  return null
}

// Writes what a group reads to another topic, with the group's offsets, in one transaction.
async function copy(command) {
  const consumer = connect(command).consumer({ groupId: command.group, maxWaitTimeInMs: 200, heartbeatInterval: 500 })
  const producer = await transactional(command)
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [command.source], fromBeginning: true })
    const found = []
    const offsets = {}
    await new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`${found.length} records of ${command.count}`)), PATIENCE_MS).unref()
      consumer.run({
        autoCommit: false, eachBatch: async ({ batch }) => {
          found.push(...batch.messages.map(({ key, value }) => ({ partition: batch.partition, key, value })))
          offsets[batch.partition] = String(Number(batch.lastOffset()) + 1)
          if (found.length >= command.count) resolve()
        },
      }).catch(reject)
    })
    const transaction = await producer.transaction()
    await transaction.send({ topic: command.topic, messages: found })
    await transaction.sendOffsets({
      consumerGroupId: command.group, topics: [{
        topic: command.source,
        partitions: Object.entries(offsets).map(([partition, offset]) => ({ partition: Number(partition), offset })),
      }],
    })
    await end(transaction, command.commit)
    await consumer.stop()
  } finally {
    await consumer.disconnect()
    await producer.disconnect()
  }
  return null
}

const OPERATIONS = {
  transact, copy,
  produce, consume, join, assignment, received, errors, leave, ...adminOperations(connect),
}

// An error of several parts tells of its first; others keep the broker's error as their cause.
function codeOf(error) {
  for (let at = error; at; at = at.errors?.[0] ?? at.groups?.[0] ?? at.partitions?.[0] ?? at.cause) {
    const code = at.code ?? at.errorCode
    if (typeof code === 'number') {
      return code
    }
    if (at.error && typeof at.error.code === 'number') {
      return at.error.code
    }
  }
  return null
}

async function answer(line) {
  try {
    const command = JSON.parse(line)
    const operation = OPERATIONS[command.op]
    if (!operation) {
      throw new Error(`there is no operation ${command.op}`)
    }
    return { ok: await operation(command) }
  } catch (error) {
    return { error: { code: codeOf(error), message: `${error.name}: ${error.message}` } }
  }
}

async function main() {
  await install()
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    process.stdout.write(`${JSON.stringify(await answer(line))}\n`)
  }
  process.exit(0)
}

main()
