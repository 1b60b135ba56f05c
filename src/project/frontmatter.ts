/** The YAML at the beginning of a Markdown file, between two lines `---`. The only file that parses YAML. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { MAX_FRONTMATTER_BRACKETS, MAX_FRONTMATTER_BYTES } from './project-limits.ts'

/** A `Map`: a key may be `__proto__`. */
export type Frontmatter = { readonly fields: ReadonlyMap<unknown, unknown>; readonly body: string }

const NO_FIELDS: ReadonlyMap<unknown, unknown> = new Map()

/** Aliases of one value: more could make a small text very large. */
const MAX_ALIASES = 10

/** Returns a sentence if it cannot be read. A file without frontmatter has no fields. `text` has lines that end with `\n`. */
export async function readFrontmatter(text: string): Promise<Frontmatter | string> {
  const parts = splitFrontmatter(text)
  if (!parts) return { fields: NO_FIELDS, body: text }
  if (typeof parts === 'string') return parts
  const { source, body } = parts
  if (Buffer.byteLength(source) > MAX_FRONTMATTER_BYTES)
    return `The frontmatter has more than ${MAX_FRONTMATTER_BYTES / 1024} KiB.`
  if (source.split(/[[{]/, MAX_FRONTMATTER_BRACKETS + 2).length > MAX_FRONTMATTER_BRACKETS + 1)
    return `The frontmatter has more than ${MAX_FRONTMATTER_BRACKETS} brackets.`
  let fields = await parseYaml(source)
  if (!fields) {
    // Each attempt may take long.
    await yieldToLoop()
    fields = await parseYaml(withQuotedValues(source))
  }
  return fields ? { fields, body } : 'The frontmatter is not YAML with a value for each name.'
}

/** Returns the text without its frontmatter, whether that can be read or not. */
export function bodyOf(text: string): string {
  const parts = splitFrontmatter(text)
  return typeof parts === 'object' ? parts.body : text
}

function splitFrontmatter(text: string): { readonly source: string; readonly body: string } | string | undefined {
  if (!/^---[ \t]*\n/.test(text)) return undefined
  const start = text.indexOf('\n') + 1
  const end = /^---[ \t]*(?:\n|$)/m
  const rest = text.slice(start)
  const match = end.exec(rest)
  if (!match) return 'The frontmatter has no end: a line `---` is missing.'
  return { source: rest.slice(0, match.index), body: rest.slice(match.index + match[0].length) }
}

/** Undefined if it is invalid. Throws nothing: nesting and aliases may be excessive. */
async function parseYaml(source: string): Promise<ReadonlyMap<unknown, unknown> | undefined> {
  const { parseDocument } = await import('yaml')
  try {
    const document = parseDocument(source, {
      schema: 'core',
      logLevel: 'silent',
      prettyErrors: false,
      uniqueKeys: false,
    })
    if (document.errors.length > 0) return undefined
    const value: unknown = document.toJS({ mapAsMap: true, maxAliasCount: MAX_ALIASES })
    return value === null ? NO_FIELDS : value instanceof Map ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Many files have `argument-hint: [name] [text]` or `description: Use it so: …`, which is not YAML, and which other
 * agents accept: each value that is on one line is taken as a text.
 */
function withQuotedValues(source: string): string {
  return source.replaceAll(
    /^([A-Za-z][\w-]*):[ \t]+([^\s"'|>].*)$/gm,
    (_, name: string, value: string) => `${name}: ${JSON.stringify(value.trim())}`,
  )
}

/** Undefined if it is not a simple value. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** A list, or a text with commas: `Bash(git add:*), Read`. Commas in parentheses do not separate. */
export function listOf(value: unknown): string[] {
  const texts = Array.isArray(value) ? value.flatMap((each) => textOf(each) ?? []) : splitList(textOf(value) ?? '')
  return texts.map((text) => text.trim()).filter(Boolean)
}

function splitList(text: string): string[] {
  const inner = text.trim().replace(/^\[(.*)\]$/s, '$1')
  const parts = ['']
  let depth = 0
  for (const character of inner) {
    if (character === '(') depth += 1
    if (character === ')') depth = Math.max(0, depth - 1)
    if (character === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}
