/**
 * Runs with no process left that its user may start, and prints as JSON how a start, a search and a program are refused,
 * and how a request that needs one is answered.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { openDirectory } from '../../../src/files/jail/opened-path.ts'
import { largeFiles } from '../../../src/files/search/ripgrep.ts'
import { HostEnvironment, runProgram, startProcess } from '../../../src/lib/start-process.ts'
import fastify from 'fastify'
import { handleError } from '../../../src/http/request/problem-handler.ts'

const env = HostEnvironment.plain
// Before the limit: this starts the threads for files.
await using directory = await openDirectory('/dev')
await promisify(execFile)('prlimit', ['--pid', String(process.pid), '--nproc=1'])
const [started] = (await once(startProcess('/bin/true', [], { env }), 'error')) as [Error]
const search = largeFiles({ directory, signal: new AbortController().signal, onCutShort: () => {} })
const searched = await Array.fromAsync(search).then(
  () => 'found nothing',
  (error: Error) => error.message,
)
const ran = await runProgram('/bin/true', [], { env }).then(
  () => 'ran',
  (error: Error) => error.message,
)
const app = fastify()
app.setErrorHandler((error: Error, request, reply) => handleError(error, request, reply))
app.get('/', () => runProgram('/bin/true', [], { env }))
const { statusCode, body } = await app.inject('/')
console.log(JSON.stringify([started.message, searched, ran, statusCode, body]))
