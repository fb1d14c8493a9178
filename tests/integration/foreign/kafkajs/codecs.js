// What kafkajs leaves out: snappy, LZ4 and Zstandard, from packages that are kept.

'use strict'

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const lz4 = require('lz4-napi')
const snappy = require('snappyjs')
const zstd = require('@bokuweb/zstd-wasm')

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const XERIAL_HEADER_BYTES = 16
const LARGEST_BATCH_BYTES = 32 << 20

// Java's producer cuts snappy into blocks under a header of its own (snappy-java's stream); others write it whole.
function unsnap(data) {
  if (!data.subarray(0, XERIAL.length).equals(XERIAL)) {
    return snappy.uncompress(data)
  }
  const blocks = []
  let at = XERIAL_HEADER_BYTES
  while (at < data.length) {
    const end = at + 4 + data.readInt32BE(at)
    blocks.push(snappy.uncompress(data.subarray(at + 4, end)))
    at = end
  }
  return Buffer.concat(blocks)
}

async function install() {
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = () => ({
    compress: async (encoder) => snappy.compress(encoder.buffer),
    decompress: async (data) => unsnap(data),
  })
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: async (data) => lz4.decompressFrame(data),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async (data) => Buffer.from(zstd.decompress(data, { defaultHeapSize: LARGEST_BATCH_BYTES })),
  })
}

module.exports = { install }
