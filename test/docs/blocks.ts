/** The code blocks of the documentation, and the requests and JSON in them. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

export type Block = { readonly page: string; readonly language: string; readonly text: string }

export function allBlocks(): Block[] {
  return ['README.md', ...globSync('docs/*.md', { cwd: ROOT }).toSorted()].flatMap((page) =>
    [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(.*)\n([^]*?)^```$/gm)].map(
      ([, language = '', text = '']) => ({ page, language, text }),
    ),
  )
}

/** `path` is absent for JSON that stands alone: a frame, or a part of a body. */
export type Shown = { readonly method?: string; readonly path?: string; readonly body?: unknown }

const REQUEST = /^(GET|POST|PUT|PATCH|DELETE) +(\/\S+) */

/** What a block sends, if it consists of requests and JSON; undefined for any other block. */
export function shownIn(text: string): Shown[] | undefined {
  const shown: Shown[] = []
  for (let rest = text.trim(); rest !== ''; rest = rest.trim()) {
    const request = REQUEST.exec(rest)
    if (request) rest = rest.slice(request[0].length).trim()
    else if (!rest.startsWith('{')) return undefined
    const json = rest.startsWith('{') ? leadingJson(rest) : ''
    rest = rest.slice(json.length)
    const [, method, path] = request ?? []
    shown.push({
      ...(method !== undefined && path !== undefined && { method, path }),
      ...(json !== '' && { body: filled(JSON.parse(json)) }),
    })
  }
  return shown
}

/** Up to the line with which the first object is complete. */
function leadingJson(text: string): string {
  const lines = text.split('\n')
  for (let end = 1; end <= lines.length; end++) {
    const part = lines.slice(0, end).join('\n')
    if (isJson(part)) return part
  }
  throw new Error(`not JSON:\n${text}`)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Puts values into the places that a page leaves open with an ellipsis. */
function filled(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => filled(item, name))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner, key)]))
  if (typeof value !== 'string' || !value.includes('…')) return value
  if (name === 'input_hash') return '0'.repeat(64)
  if (name === 'secret') return `whsec_${Buffer.alloc(32).toString('base64')}`
  if (name === 'request_id') return '0199a1f3-1b2c-7d3e-8f40-516273849506'
  return value.replaceAll('…', 'something')
}
