/** The code blocks of the documentation, and the requests and JSON in them. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** `language` is the whole line after the backticks, such as `http 409`. */
export type Block = { readonly page: string; readonly language: string; readonly text: string; readonly line: number }

export const PAGES: readonly string[] = ['README.md', ...globSync('docs/*.md', { cwd: ROOT }).toSorted()]

export const readPage = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

export function allBlocks(): Block[] {
  return PAGES.flatMap((page) => {
    const source = readPage(page)
    return [...source.matchAll(/^```(.*)\n([^]*?)^```$/gm)].map((match) => ({
      page,
      language: match[1] ?? '',
      text: match[2] ?? '',
      line: source.slice(0, match.index).split('\n').length,
    }))
  })
}

/** The files of a project on docs/project-settings.md. A block of Markdown has the path in its first line. */
export function projectFiles(): Record<string, string> {
  const shown = allBlocks().filter(({ page }) => page === 'docs/project-settings.md')
  const files = shown.flatMap(({ language, text }): [string, string][] => {
    if (language === 'json settings') return [['.claude/settings.json', text]]
    if (language !== 'markdown') return []
    const [path = ''] = text.split('\n', 1)
    return [[path, text.slice(path.length + 1)]]
  })
  return { ...Object.fromEntries(files), 'docs/style.md': 'Use tabs.\n' }
}

/** `path` is absent for JSON that stands alone: a frame, or a part of a body. */
export type Shown = { readonly method?: string; readonly path?: string; readonly body?: unknown }

const REQUEST = /^(GET|HEAD|POST|PUT|PATCH|DELETE) +(\/\S+) */

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
      ...(json !== '' && { body: JSON.parse(json) as unknown }),
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

/** Puts values into the places that a page leaves open with an ellipsis: those of `known` by the name of the field. */
export function filled(value: unknown, known: Readonly<Record<string, string>> = {}, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => filled(item, known, name))
  if (typeof value === 'object' && value !== null) {
    const ofCall = 'tool_use_id' in value ? known[`input_hash of ${String(value.tool_use_id)}`] : undefined
    const names = ofCall === undefined ? known : { ...known, input_hash: ofCall }
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner, names, key)]))
  }
  if (typeof value !== 'string' || !value.includes('…')) return value
  if (known[name] !== undefined) return known[name]
  if (name === 'input_hash') return '0'.repeat(64)
  if (name === 'secret') return `whsec_${Buffer.alloc(32).toString('base64')}`
  if (['id', 'request_id', 'conversation_id', 'conversation_ids'].includes(name))
    return '0199a1f3-1b2c-7d3e-8f40-516273849506'
  return value.replaceAll('…', 'something')
}
