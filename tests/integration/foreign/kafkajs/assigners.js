// kafkajs has one assigner, of a name that no other client knows: RoundRobinAssigner. These have the names and the bytes
// of Java's and librdkafka's range, roundrobin and sticky, so that a group can have members of kafkajs's and of others.

'use strict'

const { AssignerProtocol: { MemberAssignment, MemberMetadata }, PartitionAssigners } = require('kafkajs')

const VERSION = 0
const int32 = (number) => { const data = Buffer.alloc(4); data.writeInt32BE(number); return data }
const string = (text) => {
  const length = Buffer.alloc(2)
  length.writeInt16BE(Buffer.byteLength(text))
  return Buffer.concat([length, Buffer.from(text)])
}
const array = (entries) => Buffer.concat([int32(entries.length), ...entries])

// What a member had, as StickyAssignor's user data of version 0: without a generation.
const remembered = (held) => array(Object.entries(held).map(
  ([topic, partitions]) => Buffer.concat([string(topic), array(partitions.map(int32))])))

// Topics with the ids of the members that read them, in order. What the members want is in their subscriptions.
function readersOf(members) {
  const readers = new Map()
  for (const { memberId, memberMetadata } of members) {
    for (const topic of MemberMetadata.decode(memberMetadata).topics) {
      readers.set(topic, [...(readers.get(topic) ?? []), memberId].sort())
    }
  }
  return new Map([...readers].sort())
}

// Partition i of n goes to reader range(i) or turn(i) of m.
const range = (i, n, m) => {
  const extra = n % m
  const size = Math.floor(n / m)
  const large = extra * (size + 1)
  return i < large ? Math.floor(i / (size + 1)) : extra + Math.floor((i - large) / size)
}
const turn = (i, n, m) => i % m

const assigner = (name, place, userData) => ({ cluster }) => ({
  name,
  version: VERSION,
  protocol: ({ topics }) => ({ name, metadata: MemberMetadata.encode({ version: VERSION, topics, userData: userData() }) }),
  async assign({ members }) {
    const readers = readersOf(members)
    await cluster.addMultipleTargetTopics([...readers.keys()])
    await cluster.refreshMetadata()
    const plan = new Map(members.map(({ memberId }) => [memberId, {}]))
    for (const [topic, ids] of readers) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId).sort((a, b) => a - b)
      partitions.forEach((partition, i) => {
        const share = plan.get(ids[place(i, partitions.length, ids.length)])
        share[topic] = [...(share[topic] ?? []), partition]
      })
    }
    return [...plan].map(([memberId, assignment]) => ({
      memberId, memberAssignment: MemberAssignment.encode({ version: VERSION, assignment }),
    }))
  },
})

const nothing = () => Buffer.alloc(0)

// The assigners of a member. As a leader of a sticky group it deals the partitions out anew.
const assigners = (names, had) => names.map((name) => ({
  RoundRobinAssigner: PartitionAssigners.roundRobin,
  range: assigner('range', range, nothing),
  roundrobin: assigner('roundrobin', turn, nothing),
  sticky: assigner('sticky', turn, () => remembered(had())),
}[name]))

module.exports = { assigners }
