#!/usr/bin/env node
/** The executable: arguments -> command; error -> one line and an exit code. */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { readArguments } from './cli/command-line/read-arguments.ts'
import { UsageError } from './cli/command-line/usage-error.ts'
import { ignoreOtherSignals } from './cli/terminal/end-signals.ts'
import { endDespiteThreads } from './cli/terminal/exit.ts'
import { endWithoutReader, flushOutput, ignoreLostMessages, surviveLostOutput } from './cli/terminal/lost-output.ts'
import { oneLine, plainText } from './telemetry/plain-text.ts'
import { prepareProcess } from './process-settings.ts'
import { say, sayError } from './cli/terminal/terminal.ts'

/** What is asked for cannot be, now or later: wrong arguments or settings. 1 is for everything else. */
const USAGE_EXIT_CODE = 2

/** They run on after their reader has gone. */
const SERVERS: ReadonlySet<string> = new Set(['serve', 'scripted-model'])
/** They only print. */
const SMALL: ReadonlySet<string> = new Set(['help', 'version'])

// To strip and compile the sources takes half of the processor time of a start. The executable contains its code cache.
const source = process.argv[1]
if (source?.endsWith('.ts')) enableCompileCache(join(source, '../../node_modules/.cache/node-compile-cache'))
endDespiteThreads()
ignoreLostMessages()
ignoreOtherSignals()

void main(process.argv.slice(2)).then(
  async (code) => {
    await flushOutput()
    // An exit with undefined would be one with 0.
    process.exitCode = code ?? process.exitCode
    process.exit()
  },
  (error: unknown) => {
    sayError(`agent-server: ${tell(error)}\n`)
    process.exit(isWrongUse(error) ? USAGE_EXIT_CODE : 1)
  },
)

/** Returns the exit code; undefined for that of the process. */
async function main(args: string[]): Promise<number | undefined> {
  const command = readArguments(args, { isTerminal: isatty(0) && isatty(1) })
  if (!SMALL.has(command.name)) prepareProcess()
  const isServer = SERVERS.has(command.name)
  if (isServer || command.name === 'demo') surviveLostOutput({ isServer })
  else if (command.name !== 'chat') endWithoutReader()
  switch (command.name) {
    case 'help': {
      const { helpOf } = await import('./cli/command-line/help.ts')
      say(helpOf(command.command))
      return undefined
    }
    case 'version': {
      const { VERSION } = await import('./wiring/version.ts')
      say(`${VERSION}\n`)
      return undefined
    }
    case 'chat': {
      const { run } = await import('./cli/run.ts')
      return await run(command)
    }
    case 'sessions': {
      const { sessions } = await import('./cli/sessions.ts')
      await sessions(command)
      return undefined
    }
    case 'completion': {
      const { completionScript } = await import('./cli/completion/completion.ts')
      say(completionScript(command.shell))
      return undefined
    }
    case 'serve': {
      const { serve } = await import('./cli/serve.ts')
      await serve(command)
      return undefined
    }
    case 'import':
    case 'export': {
      const { transfer } = await import('./cli/transfer.ts')
      await transfer(command)
      return undefined
    }
    case 'acp':
    case 'mcp': {
      const { runProgram } = await import('./cli/programs.ts')
      return await runProgram(command)
    }
    case 'snippet': {
      const { snippet } = await import('./cli/snippet.ts')
      say(snippet(command))
      return undefined
    }
    case 'dashboard': {
      const { dashboard } = await import('./cli/dashboard.ts')
      await dashboard(command)
      return undefined
    }
    case 'key': {
      const { printKey } = await import('./cli/master-key.ts')
      await printKey()
      return undefined
    }
    case 'doctor': {
      const { doctor } = await import('./cli/doctor/doctor.ts')
      return await doctor(command.run)
    }
    case 'demo': {
      const { commandFromAnywhere } = await import('./cli/own-command.ts')
      const { demo } = await import('./cli/demo/demo.ts')
      return await demo(commandFromAnywhere())
    }
    case 'scripted-model': {
      const { scriptedModel } = await import('./cli/scripted-model.ts')
      await scriptedModel(command)
      return undefined
    }
    default:
      return command satisfies never
  }
}

/** Compares the name: to import the class of configuration errors would load the configuration for `--help`, too. */
function isWrongUse(error: unknown): boolean {
  return error instanceof Error && (['UsageError', 'ConfigError'].includes(error.name) || isWithoutDirectory(error))
}

const isWithoutDirectory = (error: NodeJS.ErrnoException): boolean => error.syscall === 'uv_cwd'

/** `hostname` is that of a failed lookup. */
type ListenError = NodeJS.ErrnoException & { address?: string; hostname?: string; port?: number }

/** Describes the errors that operators encounter in a sentence; for any other, its message. A stack only for bugs. */
function tell(error: unknown): string {
  if (error instanceof TypeError || error instanceof ReferenceError) return plainText(error.stack ?? error.message)
  return oneLine(error instanceof Error ? sentenceOf(error) : String(error))
}

function sentenceOf(error: Error): string {
  if (error instanceof UsageError) return `${error.message} See agent-server --help.`
  if (isWithoutDirectory(error)) return 'the current directory was removed; go to another one.'
  const { code, address, hostname, port } = error as ListenError
  if (code === 'EADDRINUSE')
    return `port ${port} on ${address} is in use; stop what listens there, or choose another one with --port or OPENHANDS_SERVER_PORT.`
  if (code === 'EACCES' && port !== undefined)
    return `port ${port} may not be listened on by this user; set OPENHANDS_SERVER_PORT to one above 1023.`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${address ?? hostname ?? 'the host'} is not an address of this machine; set OPENHANDS_SERVER_HOST, or use --host localhost.`
  return error.message
}
