#!/usr/bin/env node
/** The executable: arguments -> command; error -> one line and an exit code. */
import { parseArgs } from 'node:util'
import { prepareProcess } from './process-settings.ts'

const USAGE = `agent-server: hosts AI agents behind REST and Server-Sent Events

  agent-server serve [--host ADDRESS] [--port PORT] [--generate-key]
      Starts the server. It needs OPENHANDS_MASTER_KEY in the environment; with
      --generate-key it makes a key at first use, keeps it in the data directory,
      and listens on localhost (127.0.0.1 and ::1) by default.
  agent-server demo
      Shows an agent doing a small real job. Needs no key and no network.
  agent-server scripted-model [--port PORT] [SCRIPT.json]
      A stand-in for a model, to try the server or test a client without a key:
      an OpenAI-compatible endpoint that plays a script, the demo's by default.
  agent-server --version | --help

All settings are environment variables; docs/configuration.md lists them.
`

const OPTIONS = {
  host: { type: 'string' },
  port: { type: 'string' },
  'generate-key': { type: 'boolean', default: false },
  version: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

prepareProcess()

// Handle a file size limit like a full disk: the write fails, and the conversation reports it. By default the signal
// would end the server.
process.on('SIGXFSZ', () => {})

await main(process.argv.slice(2)).then(
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`agent-server: ${tell(error)}\n`)
    process.exit(1)
  },
)

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
  const [command, ...rest] = positionals
  if (values.help || command === 'help') return void process.stdout.write(USAGE)
  if (values.version) {
    const { VERSION } = await import('./wiring/version.ts')
    return void process.stdout.write(`${VERSION}\n`)
  }
  if (command === 'scripted-model') {
    const { scriptedModel } = await import('./cli/scripted-model.ts')
    return await scriptedModel({ port: values.port, script: rest[0] })
  }
  if (rest.length) throw new Error(`${rest[0]} is one word too many; see agent-server --help.`)
  switch (command) {
    case 'serve': {
      const { serve } = await import('./cli/serve.ts')
      return await serve({ generateKey: values['generate-key'], host: values.host, port: values.port })
    }
    case 'demo': {
      const { demo } = await import('./cli/demo.ts')
      return await demo()
    }
    case undefined:
      throw new Error('say what to do: serve or demo; see agent-server --help.')
    default:
      throw new Error(`there is no command ${command}; see agent-server --help.`)
  }
}

/** Describes the errors that operators encounter in a sentence; for any other, its message. A stack only for bugs. */
function tell(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  if (code === 'EADDRINUSE')
    return `port ${port} on ${address} is in use; stop what listens there, or set OPENHANDS_SERVER_PORT.`
  if (code === 'EACCES' && port !== undefined)
    return `port ${port} may not be listened on by this user; set OPENHANDS_SERVER_PORT to one above 1023.`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${address ?? 'the host'} is not an address of this machine; set OPENHANDS_SERVER_HOST.`
  return error instanceof TypeError || error instanceof ReferenceError ? (error.stack ?? error.message) : error.message
}
