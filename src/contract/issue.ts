/** What is wrong with a field, for an error answer: where and why, and nothing that the client itself wrote. */
import type { z } from 'zod'

export type IssueDescription = { readonly path: string; readonly message: string }

type Issue = { readonly code?: string; readonly path: readonly PropertyKey[]; readonly message: string }

/** The names below these are the client's own, and may be a secret that stands in the wrong place. */
const FIELDS_OF_FREE_NAMES = new Set<PropertyKey>(['metadata', 'extra_headers', 'extra_body', 'secrets', 'headers'])

/** `fields`: the existing fields at `root`, if they are known. */
export function describeIssue(
  issue: Issue | z.core.$ZodIssue,
  root: readonly string[],
  fields: readonly string[] = [],
): IssueDescription {
  const free = issue.path.findIndex((name) => FIELDS_OF_FREE_NAMES.has(name))
  const path = free < 0 ? issue.path : issue.path.slice(0, free + 1)
  const known =
    path.length === 0 && fields.length > 0 ? `the fields are ${fields.join(', ')}` : '/docs lists the fields'
  // Zod's own sentence quotes the unknown names.
  const message = issue.code === 'unrecognized_keys' ? `has an unknown field; ${known}` : issue.message
  return { path: [...root, ...path].map(String).join('.'), message }
}
