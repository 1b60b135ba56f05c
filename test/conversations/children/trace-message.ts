/**
 * Prints the files of `src/` with functions that run for each message in a conversation that has run before, and the number
 * of these functions, as JSON.
 */
import { sizeOf, traceMessages } from '../../../scripts/journeys.ts'

// The server looks for idle conversations every five seconds, whether or not a message is being counted.
const { setInterval } = globalThis
globalThis.setInterval = Object.assign((_: unknown, ms?: number) => setInterval(() => {}, ms), setInterval)

const message = await traceMessages()
process.stdout.write(JSON.stringify({ files: [...message.files.keys()], functions: sizeOf(message).functions }))
