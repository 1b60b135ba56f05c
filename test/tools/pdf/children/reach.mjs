/** Tries what a PDF that has taken over its parser would try, and answers as pages what succeeded. */
// @ts-check
import { Worker } from 'node:worker_threads'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { once } from 'node:events'

/** @type {Record<string, () => unknown>} */
const ATTEMPTS = {
  read: () => readFileSync('/etc/passwd'),
  environment: () => readFileSync('/proc/self/environ'),
  write: () => writeFileSync('/tmp/agent-server-reach', 'x'),
  program: () => execFileSync('true'),
  worker: () => new Worker('1', { eval: true }),
  connect: () => once(connect(9, '127.0.0.1'), 'connect').catch((error) => refuse(error, 'ECONNREFUSED')),
  listen: () => once(createServer().listen(0), 'listening'),
  // oxlint-disable-next-line typescript/no-implied-eval -- this is what must not work
  code: () => new Function('return 1')(),
  // By name: the types of Node do not know it.
  wasm: () => Reflect.get(globalThis, 'WebAssembly').validate(new Uint8Array()),
}

/**
 * A refused connection was tried, so it counts as a success.
 * @param {{ code?: string }} error
 * @param {string} code
 */
function refuse(error, code) {
  if (error.code !== code) throw error
}

const succeeded = []
for (const [name, attempt] of Object.entries(ATTEMPTS)) {
  try {
    await attempt()
    succeeded.push(name)
  } catch {}
}
const variables = Object.keys(process.env).filter(
  (name) => !['NODE_OPTIONS', 'PWD', 'SHLVL', '_', 'OLDPWD'].includes(name),
)
const text = JSON.stringify({ succeeded, variables })
process.stdout.write(JSON.stringify({ total: 1, pages: [{ number: 1, text }] }), () => process.exit())
