/** The definitions of tools that may change at any time, those of MCP servers and of clients: what was approved must be what runs. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../lib/json/canonical-json.ts'
import type { ToolContext } from './tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'

/** Hashes all that makes two tools the same. */
export const hashDefinition = (definition: unknown): string =>
  createHash('sha256').update(canonicalJson(definition)).digest('hex')

const CHANGED =
  'The definition of this tool has changed since the user was asked about the call, so it did not run. Read the present definition, and call the tool again if it still fits.'

/** Returns the outcome of a call that was approved with another definition. */
export function refuseChanged(
  tool: { readonly definitionHash?: string },
  { approvedDefinition }: ToolContext,
): ToolOutcome | undefined {
  if (approvedDefinition === undefined || approvedDefinition === tool.definitionHash) return undefined
  return failure('denied', CHANGED)
}
