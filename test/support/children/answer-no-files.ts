/** Mounts a file system with FUSE, answers the kernel's first request, and then reads its requests without an answer. */
import { spawnSync } from 'node:child_process'
import { openSync, readSync, writeSync } from 'node:fs'

const [directory] = process.argv.slice(2) as [string]
const device = openSync('/dev/fuse', 'r+')
const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other'
const mounting = ['-i', '-t', 'fuse', '-o', options, 'hanging', directory]
const { status } = spawnSync('mount', mounting, { stdio: ['ignore', 'inherit', 'inherit', device] })
if (status !== 0) throw new Error(`mount ended with ${status}`)

const request = Buffer.alloc(1024 * 1024)
readSync(device, request)
writeSync(device, firstAnswer())
writeSync(1, 'mounted')
for (;;) {
  readSync(device, request)
  writeSync(1, 'asked')
}

/** FUSE_INIT of the protocol 7.31, from `linux/fuse.h`: a header of 16 bytes, and `fuse_init_out`. */
function firstAnswer(): Buffer {
  const answer = Buffer.alloc(80)
  answer.writeUInt32LE(answer.length, 0)
  request.copy(answer, 8, 8, 16) // the id of the request
  answer.writeUInt32LE(7, 16)
  answer.writeUInt32LE(31, 20)
  answer.writeUInt32LE(64 * 1024, 24) // max_readahead
  answer.writeUInt16LE(8, 32) // max_background
  answer.writeUInt16LE(8, 34) // congestion_threshold
  answer.writeUInt32LE(128 * 1024, 36) // max_write
  return answer
}
