/**
 * Prints the files of `src/` with functions that run for a message in a conversation that has run before, and the number of
 * these functions, as JSON.
 */
import { sizeOf, traceMessage } from '../../../scripts/journeys.ts'

const message = await traceMessage()
process.stdout.write(JSON.stringify({ files: [...message.files.keys()], functions: sizeOf(message).functions }))
