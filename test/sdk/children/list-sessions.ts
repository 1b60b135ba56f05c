/** A program that only connects: `node list-sessions.ts '{"persistDir":…}'`. */
import { sessions } from '../../../src/index.ts'

const views = await Array.fromAsync(sessions(JSON.parse(process.argv[2] ?? '{}')).list())
process.stdout.write(`${views.length} sessions\n`)
