/** The command line with other places for models than those that are known, for tests: `FIRST_START_PLACES`. */
import { readArguments } from '../../../../src/cli/command-line/read-arguments.ts'
import type { KnownPlaces } from '../../../../src/cli/first-start/first-start.ts'
import { run } from '../../../../src/cli/run.ts'

const invocation = readArguments(process.argv.slice(2), { isTerminal: true })
if (invocation.name !== 'chat') throw new Error('this program has only the chat')
const places = JSON.parse(process.env['FIRST_START_PLACES'] ?? '') as KnownPlaces
run(invocation, places).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(`agent-server: ${error instanceof Error ? error.message : String(error)}`)
    process.exit(2)
  },
)
