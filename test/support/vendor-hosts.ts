/** A scripted model that stands in for all vendors: what a process sends to their hosts over TLS arrives there. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'

const PRELOADED = join(import.meta.dirname, 'children/vendor-hosts.ts')
const tlsFile = (name: string) => readFileSync(join(import.meta.dirname, 'tls', name))

export type VendorHosts = AsyncDisposable & {
  readonly model: ScriptedModel
  /** The environment of a process whose vendors are here. */
  readonly env: Readonly<Record<string, string>>
  /** Host and credential of each request so far, in their order. */
  readonly asked: () => string[]
}

export async function startVendorHosts(script: Script): Promise<VendorHosts> {
  const model = await startScriptedModel(script)
  const { port } = new URL(model.baseUrl)
  const options = { cert: tlsFile('localhost-cert.pem'), key: tlsFile('localhost-key.pem') }
  const server = createServer(options, (socket) => {
    const plain = connect(Number(port), '127.0.0.1')
    for (const each of [socket, plain]) each.on('error', () => [socket, plain].forEach((both) => both.destroy()))
    socket.pipe(plain).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: bound } = server.address() as AddressInfo
  return {
    model,
    // Quoted: a blank would end it.
    env: { NODE_OPTIONS: `--require=${JSON.stringify(PRELOADED)}`, TEST_VENDOR_PORT: String(bound) },
    asked: () =>
      model.requests.map(({ headers }) => {
        const key = headers['x-api-key']?.toString() ?? headers.authorization?.replace(/^Bearer /, '') ?? 'no key'
        return `${headers.host} ${key}`
      }),
    async [Symbol.asyncDispose]() {
      await model.close()
      server.close()
    },
  }
}
