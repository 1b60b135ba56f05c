/**
 * The program of the thread that writes the tables: each commit waits for the disk. All requests that have come by then are
 * one transaction, so that they wait together. Plain JavaScript, like the program for schemas.
 */
// @ts-check
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { failureOf, loadSqlite } from '../directory/sqlite.ts'

/** @import { DatabaseSync } from 'node:sqlite' */
/** @import { TableAnswer, TableRequest } from './table-thread.ts' */

/** The journal is synced before the tables and truncated after them: what was committed survives a power failure. */
const SETTINGS = 'PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON'
/** The wait for a lock, in milliseconds: in tests, two servers of one process may have the same directory. */
const BUSY_MS = 5000

/** @type {DatabaseSync | undefined} */
let opened

const port = parentPort
port?.on('message', (/** @type {TableRequest | 'close'} */ first) => {
  const requests = [first]
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) requests.push(next.message)
  const asked = requests.filter((request) => request !== 'close')
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  if (asked.length > 0) port.postMessage(answersTo(asked))
  if (asked.length === requests.length) return
  opened?.close()
  port.close()
})

/** If not all are possible, each is tried alone. @param {TableRequest[]} requests @returns {TableAnswer[]} */
function answersTo(requests) {
  try {
    return commit(database(), requests)
  } catch (error) {
    // Ends the transaction. What was opened while the disk was read-only would stay so.
    opened?.close()
    opened = undefined
    if (requests.length > 1) return requests.flatMap((request) => answersTo([request]))
    return requests.map(({ number }) => ({ number, error: failureOf(error) }))
  }
}

/** @param {DatabaseSync} tables @param {TableRequest[]} requests @returns {TableAnswer[]} */
function commit(tables, requests) {
  tables.exec('BEGIN')
  const answers = requests.map(({ number, steps }) => ({
    number,
    rows: steps.map(({ sql, values }) => tables.prepare(sql).all(...values)),
  }))
  tables.exec('COMMIT')
  return answers
}

/** Never creates it: a directory without its tables is damaged. */
function database() {
  if (opened) return opened
  const { DatabaseSync } = loadSqlite()
  opened = new DatabaseSync(new URL(workerData.url), { timeout: BUSY_MS })
  opened.exec(SETTINGS)
  return opened
}
