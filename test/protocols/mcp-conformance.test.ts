/** The MCP server in the scenarios of the protocol's own conformance tests that need no fixture. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execa } from 'execa'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { borrowServer } from '../support/shared-server.ts'
import { KEY } from '../support/server.ts'

const PROGRAM = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
const server = await borrowServer()
afterAll(() => server[Symbol.asyncDispose]())

/** The tests send no key. This one adds it, and changes nothing else. */
const proxy = createServer((incoming, outgoing) => {
  const { method = 'GET', url: path = '/', headers } = incoming
  const options = { method, path, headers: { ...headers, authorization: `Bearer ${KEY}` } }
  const forwarded = request(server.url, options, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
    answer.pipe(outgoing)
  })
  forwarded.once('error', () => outgoing.destroy())
  incoming.pipe(forwarded)
})
await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
afterAll(() => void proxy.close())
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
const { port } = proxy.address() as AddressInfo

test.each(['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'])(
  'the scenario %s of the conformance tests passes',
  async (scenario) => {
    const args = ['server', '--url', `http://127.0.0.1:${port}/mcp`, '--scenario', scenario]
    const { stdout, exitCode } = await execa(process.execPath, [PROGRAM, ...args], { reject: false })
    expect(stdout).toMatch(/Passed: [1-9]\d*\/\d+, 0 failed/)
    expect(exitCode).toBe(0)
  },
)
