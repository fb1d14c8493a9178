// Administration through kafkajs. It has no incremental change of settings and no deletion of committed offsets.

'use strict'

const { ConfigResourceTypes } = require('kafkajs')

const TOPIC_ALREADY_EXISTS = 36
const admins = new Map()

const byPartition = (rows, field = 'offset') =>
  Object.fromEntries(rows.map((row) => [row.partition, Number(row[field])]))
const entries = (configs) => Object.entries(configs).map(([name, value]) => ({ name, value }))
const refused = (code, message) => Object.assign(new Error(message), { code })

// The assignment of a classic consumer: version, then topics with their partitions.
function partitionsOf(assignment) {
  const found = []
  let at = 2
  const int32 = () => assignment.readInt32BE((at += 4) - 4)
  for (let topics = assignment.length ? int32() : 0; topics > 0; topics--) {
    const size = assignment.readInt16BE(at)
    const topic = assignment.toString('utf8', at + 2, at + 2 + size)
    at += 2 + size
    for (let partitions = int32(); partitions > 0; partitions--) {
      found.push(`${topic}-${int32()}`)
    }
  }
  return found.sort()
}

module.exports = (connect) => {
  // The one client for a cluster; it stays connected, as a program's would.
  async function adminOf(command) {
    if (!admins.has(command.servers)) {
      const admin = connect(command).admin()
      await admin.connect()
      admins.set(command.servers, admin)
    }
    return admins.get(command.servers)
  }

  async function create_topic(command) {
    const admin = await adminOf(command)
    const made = await admin.createTopics({ topics: [{
      topic: command.topic, numPartitions: command.partitions, replicationFactor: command.replicas,
      configEntries: entries(command.configs),
    }] })
    if (!made) {
      throw refused(TOPIC_ALREADY_EXISTS, 'createTopics() answered false')
    }
    return null
  }

  const list_topics = async (command) => (await adminOf(command)).listTopics()

  async function describe_topic(command) {
    const { topics } = await (await adminOf(command)).fetchTopicMetadata({ topics: [command.topic] })
    const partitions = topics[0].partitions.map((each) => ({
      partition: each.partitionId, leader: each.leader, replicas: each.replicas, isr: each.isr }))
    return { partitions: partitions.sort((a, b) => a.partition - b.partition) }
  }

  async function delete_topic(command) {
    await (await adminOf(command)).deleteTopics({ topics: [command.topic] })
    return null
  }

  async function create_partitions(command) {
    await (await adminOf(command)).createPartitions({
      topicPartitions: [{ topic: command.topic, count: command.partitions }] })
    return null
  }

  async function describe_configs(command) {
    const { resources } = await (await adminOf(command)).describeConfigs({
      includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: command.topic }] })
    return Object.fromEntries(resources[0].configEntries.map((each) => [each.configName, {
      value: each.configValue, source: each.configSource, sensitive: each.isSensitive }]))
  }

  async function replace_configs(command) {
    await (await adminOf(command)).alterConfigs({ resources: [{
      type: ConfigResourceTypes.TOPIC, name: command.topic, configEntries: entries(command.configs) }] })
    return null
  }

  async function delete_records(command) {
    const admin = await adminOf(command)
    await admin.fetchTopicOffsets(command.topic)
    await admin.deleteTopicRecords({
      topic: command.topic,
      partitions: Object.entries(command.offsets).map(([partition, offset]) => ({
        partition: Number(partition), offset: String(offset) })),
    })
    const left = await admin.fetchTopicOffsets(command.topic)
    return byPartition(left.filter(({ partition }) => partition in command.offsets), 'low')
  }

  async function list_offsets(command) {
    const admin = await adminOf(command)
    if (command.at === 'earliest' || command.at === 'latest') {
      const rows = await admin.fetchTopicOffsets(command.topic)
      return byPartition(rows, command.at === 'earliest' ? 'low' : 'high')
    }
    return byPartition(await admin.fetchTopicOffsetsByTimestamp(command.topic, Number(command.at)))
  }

  async function describe_cluster(command) {
    const { brokers, controller, clusterId } = await (await adminOf(command)).describeCluster()
    return { brokers: brokers.map(({ nodeId }) => nodeId).sort(), controller, has_id: Boolean(clusterId) }
  }

  async function list_groups(command) {
    const { groups } = await (await adminOf(command)).listGroups()
    return groups.map(({ groupId }) => groupId).sort()
  }

  async function describe_group(command) {
    const { groups: [group] } = await (await adminOf(command)).describeGroups([command.group])
    return {
      state: group.state, protocol: group.protocol,
      members: group.members.map((each) => ({
        client_id: each.clientId, assignment: partitionsOf(each.memberAssignment) })),
    }
  }

  async function delete_group(command) {
    await (await adminOf(command)).deleteGroups([command.group])
    return null
  }

  async function fetch_offsets(command) {
    const [topic] = await (await adminOf(command)).fetchOffsets({ groupId: command.group, topics: [command.topic] })
    return byPartition(topic.partitions.filter(({ offset }) => Number(offset) >= 0))
  }

  async function alter_offsets(command) {
    await (await adminOf(command)).setOffsets({
      groupId: command.group, topic: command.topic,
      partitions: Object.entries(command.offsets).map(([partition, offset]) => ({
        partition: Number(partition), offset: String(offset) })),
    })
    return null
  }

  return {
    create_topic, list_topics, describe_topic, delete_topic, create_partitions, describe_configs, replace_configs,
    delete_records, list_offsets, describe_cluster, list_groups, describe_group, delete_group, fetch_offsets,
    alter_offsets,
  }
}
