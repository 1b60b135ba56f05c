#!/usr/bin/env node
/** The executable: arguments -> command; error -> one line and an exit code. */
import { readArguments, USAGE, UsageError } from './cli/arguments.ts'
import { surviveLostOutput } from './cli/lost-output.ts'
import { prepareProcess } from './process-settings.ts'

/** What is asked for cannot be, now or later: wrong arguments or settings. 1 is for everything else. */
const USAGE_EXIT_CODE = 2

prepareProcess()

// Handle a file size limit like a full disk: the write fails, and the conversation reports it. By default the signal
// would end the server.
process.on('SIGXFSZ', () => {})
surviveLostOutput()

await main(process.argv.slice(2)).then(
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`agent-server: ${tell(error)}\n`)
    process.exit(isWrongUse(error) ? USAGE_EXIT_CODE : 1)
  },
)

async function main(args: string[]): Promise<void> {
  const command = readArguments(args)
  switch (command.name) {
    case 'help':
      return void process.stdout.write(USAGE)
    case 'version': {
      const { VERSION } = await import('./wiring/version.ts')
      return void process.stdout.write(`${VERSION}\n`)
    }
    case 'serve': {
      const { serve } = await import('./cli/serve.ts')
      return await serve(command)
    }
    case 'key': {
      const { printKey } = await import('./cli/master-key.ts')
      return await printKey()
    }
    case 'demo': {
      const { demo } = await import('./cli/demo.ts')
      return await demo()
    }
    case 'scripted-model': {
      const { scriptedModel } = await import('./cli/scripted-model.ts')
      return await scriptedModel(command)
    }
    default:
      command satisfies never
  }
}

/** By name: to import the class of configuration errors would load the configuration for `--help`, too. */
function isWrongUse(error: unknown): boolean {
  return error instanceof Error && ['UsageError', 'ConfigError'].includes(error.name)
}

/** `hostname` is that of a failed lookup. */
type ListenError = NodeJS.ErrnoException & { address?: string; hostname?: string; port?: number }

/** Describes the errors that operators encounter in a sentence; for any other, its message. A stack only for bugs. */
function tell(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof UsageError) return `${error.message} See agent-server --help.`
  const { code, address, hostname, port } = error as ListenError
  if (code === 'EADDRINUSE')
    return `port ${port} on ${address} is in use; stop what listens there, or choose another one with --port or OPENHANDS_SERVER_PORT.`
  if (code === 'EACCES' && port !== undefined)
    return `port ${port} may not be listened on by this user; set OPENHANDS_SERVER_PORT to one above 1023.`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${address ?? hostname ?? 'the host'} is not an address of this machine; set OPENHANDS_SERVER_HOST, or use --host localhost.`
  return error instanceof TypeError || error instanceof ReferenceError ? (error.stack ?? error.message) : error.message
}
