/**
 * Validates the final answer of a run against the JSON Schema of a client. Both are untrusted, and to compile or to check
 * can take forever: that happens in a thread, so the event loop is never blocked by it.
 */
import type { OutputSchema } from '../../state/run-state.ts'
import type { Validation } from './schema-thread.ts'
import { SchemaThread } from './schema-thread.ts'

/** The thread for all conversations; it is not started before the first schema. */
const thread = new SchemaThread()

/** Returns what is wrong with a schema, as a clause; undefined if answers can be validated with it. */
export async function faultOfSchema(schema: OutputSchema): Promise<string | undefined> {
  const answer = await thread.check({ schema })
  return 'fault' in answer ? answer.fault : undefined
}

/**
 * Parses the text as JSON and validates it. A schema that cannot be used is a fault as well. Throws a `Problem` only while
 * the machine has no room for the thread.
 */
export async function validateOutput(schema: OutputSchema, text: string): Promise<Validation> {
  return await thread.check({ schema, text })
}
