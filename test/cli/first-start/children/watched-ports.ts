/** Listens at the ports of servers of models, runs a command, and reports how often one of the ports was connected to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { LOCAL_SERVERS } from '../../../../src/cli/endpoints/local-endpoints.ts'

let connections = 0
for (const { port } of LOCAL_SERVERS) {
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
}
const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] })
const [code] = (await once(child, 'exit')) as [number]
console.log(`exit code ${code}, ${connections} connections`)
process.exit()
