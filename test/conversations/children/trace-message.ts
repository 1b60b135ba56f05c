/** Prints the files of `src/` with functions that run for a message in a conversation that has run before, as JSON. */
import { traceMessage } from '../../../scripts/journeys.ts'

process.stdout.write(JSON.stringify([...(await traceMessage()).files.keys()]))
