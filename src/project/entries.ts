/** Loads skills, slash commands and agents: each is a Markdown file with a name and a description in its frontmatter. */
import { basename, dirname } from 'node:path/posix'
import type { ProjectEntry } from '../contract/project/project-settings.ts'
import { parseAllowRule } from '../policy/rules/rule.ts'
import { readAgent } from './agent-file.ts'
import { listOf, readFrontmatter, textOf } from './frontmatter.ts'
import type { Frontmatter } from './frontmatter.ts'
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'
import { onOneLine } from './one-line.ts'
import { MAX_DESCRIPTION_CHARS, MAX_ENTRIES, MAX_PARSE_MS } from './project-limits.ts'

export type EntryKind = {
  readonly what: 'skill' | 'slash command' | 'agent'
  /** The directory below the directory of settings. */
  readonly directory: string
  readonly isWanted: (fileName: string) => boolean
  /** Returns the name that follows from its path below `directory`, and from its frontmatter. */
  readonly nameOf: (path: string, fields: Frontmatter['fields']) => string
  /** Fields that have no effect here. */
  readonly unsupported: readonly string[]
}

const withoutExtension = (path: string) => path.replace(/\.md$/i, '')
const isMarkdown = (name: string) => /\.md$/i.test(name)

export const SKILLS: EntryKind = {
  what: 'skill',
  directory: 'skills',
  isWanted: (name) => name === 'SKILL.md',
  nameOf: (path, fields) => textOf(fields.get('name')) ?? basename(dirname(path)),
  unsupported: ['model', 'hooks', 'context', 'agent'],
}

export const COMMANDS: EntryKind = {
  what: 'slash command',
  directory: 'commands',
  isWanted: isMarkdown,
  nameOf: (path) => withoutExtension(path).replaceAll('/', ':'),
  unsupported: ['model', 'hooks', 'context', 'agent'],
}

export const AGENTS: EntryKind = {
  what: 'agent',
  directory: 'agents',
  isWanted: isMarkdown,
  nameOf: (path, fields) => textOf(fields.get('name')) ?? basename(withoutExtension(path)),
  unsupported: ['hooks', 'mcpServers', 'skills', 'memory', 'background', 'isolation', 'initialPrompt', 'effort'],
}

/** It is in a prompt, and part of rules and calls. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/

/** Adds the entries of one source to `known`; those of an earlier source keep their names. */
export async function loadEntries(
  kind: EntryKind,
  { directory, ...context }: SourceContext & { readonly directory: string },
  knownEntries: Map<string, ProjectEntry>,
): Promise<void> {
  const { ignored, reader } = context
  const start = directory === '' ? kind.directory : `${directory}/${kind.directory}`
  const { paths, isCut } = await reader.find(start, kind.isWanted, MAX_ENTRIES)
  if (isCut) ignored.add(`more files of the kind ${kind.what}`, start, `At most ${MAX_ENTRIES} are read.`)
  const parsing = { ms: 0 }
  for (const path of paths) {
    if (parsing.ms > MAX_PARSE_MS)
      return ignored.add(`more files of the kind ${kind.what}`, path, 'Parsing them takes too long.')
    const entry = await readEntry(kind, { ...context, parsing }, path, path.slice(start.length + 1))
    if (typeof entry === 'string') ignored.add(kind.what, path, entry)
    else if (entry && knownEntries.has(entry.name))
      ignored.add(`${kind.what} ${entry.name}`, path, `${knownEntries.get(entry.name)?.path ?? ''} has the same name.`)
    else if (entry) knownEntries.set(entry.name, entry)
  }
}

/** Returns a sentence if it is ignored, undefined if the file does not exist any more. */
async function readEntry(
  kind: EntryKind,
  context: SourceContext & { readonly parsing: { ms: number } },
  path: string,
  inner: string,
): Promise<ProjectEntry | string | undefined> {
  const foundText = await context.reader.read(path)
  if (foundText.kind === 'missing') return undefined
  if (foundText.kind === 'refused') return foundText.reason
  const startedAt = performance.now()
  const frontmatter = await readFrontmatter(foundText.text)
  context.parsing.ms += performance.now() - startedAt
  if (typeof frontmatter === 'string') return frontmatter
  const { fields, body } = frontmatter
  const name = kind.nameOf(inner, fields)
  if (!NAME.test(name)) return 'Its name must have 1 to 64 letters, digits and the characters _ . : - only.'
  const hint = hintOf(fields.get('argument-hint'))
  const allowedNames = allowedTools(kind, context, { name, path, fields })
  const definition = kind === AGENTS ? readAgent(context, { name, path, fields, body }) : undefined
  if (typeof definition === 'string') return definition
  for (const field of kind.unsupported.filter((each) => fields.has(each)))
    context.ignored.add(`${field} of the ${kind.what} ${name}`, path, 'This server does not support it.')
  return {
    name,
    description: onOneLine(textOf(fields.get('description')) ?? firstLine(body), MAX_DESCRIPTION_CHARS),
    source: context.source,
    path,
    ...(hint && { argument_hint: onOneLine(hint, MAX_DESCRIPTION_CHARS) }),
    ...(allowedNames.length > 0 && { allowed_tools: allowedNames }),
    ...(definition && { definition }),
    ...(fields.get('disable-model-invocation') === true && { user_only: true as const }),
  }
}

/** `[file]` is a list in YAML. */
function hintOf(value: unknown): string {
  return Array.isArray(value) ? `[${listOf(value).join(', ')}]` : (textOf(value) ?? '')
}

type NamedFields = { readonly name: string; readonly path: string; readonly fields: Frontmatter['fields'] }

/** Returns the tools of trusted files only, and only what is a rule here. */
function allowedTools(kind: EntryKind, context: SourceContext, { name, path, fields }: NamedFields): string[] {
  const { isTrusted, ignored, canonicalRule } = context
  if (kind === AGENTS) return []
  const texts = listOf(fields.get('allowed-tools')).map((text) => canonicalRule(text))
  const what = `allowed-tools of the ${kind.what} ${name}`
  if (texts.length > 0 && !isTrusted) ignored.add(what, path, NOT_TRUSTED)
  if (!isTrusted) return []
  return texts.slice(0, MAX_ENTRIES).filter((text) => {
    const rule = parseAllowRule(text)
    if (typeof rule === 'string') ignored.add(what, path, rule)
    return typeof rule !== 'string'
  })
}

/** The first that is not empty, without the marks of a heading. */
function firstLine(body: string): string {
  const [line] = /^.*\S.*/m.exec(body) ?? ['']
  const text = line.trimStart()
  return text.replace(/^#+[ \t]*(?=\S)/, '')
}
