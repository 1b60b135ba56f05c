/** How a tool call looks in an editor: its kind, a title with the whole command, its files and its changes. */
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import { isAbsolute, relative, resolve } from 'node:path'
import { fieldsOfInput, titleOf } from '../../contract/events/call-title.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { showHidden } from '../../contract/values/show-hidden.ts'

export type EditorCall = {
  readonly name: string
  readonly kind: ToolKind
  readonly title: string
  readonly locations: ToolCallLocation[]
  readonly rawInput: unknown
  /** What it changes in files. Empty for other calls. */
  readonly content: ToolCallContent[]
}

const KINDS: Readonly<Record<string, ToolKind>> = {
  Bash: 'execute',
  BashOutput: 'execute',
  KillShell: 'execute',
  Read: 'read',
  Write: 'edit',
  Edit: 'edit',
  MultiEdit: 'edit',
  apply_patch: 'edit',
  Glob: 'search',
  Grep: 'search',
  WebFetch: 'fetch',
  WebSearch: 'fetch',
  Think: 'think',
  Task: 'think',
}

/** `agent`: the name of the subagent that makes the call. */
export function formOfCall(name: string, input: unknown, workdir: string, agent: string | undefined): EditorCall {
  const title = ownTitle(name, input, workdir)
  return {
    name,
    kind: kindOf(name, input),
    title: agent === undefined ? title : `${showHidden(agent)}: ${title}`,
    locations: locationsOf(name, input, workdir),
    rawInput: mapStrings(input, showHidden),
    content: changesOf(name, input, workdir).content,
  }
}

function kindOf(name: string, input: unknown): ToolKind {
  if (name !== 'FileEditor') return KINDS[name] ?? 'other'
  return fieldsOfInput(input)['command'] === 'view' ? 'read' : 'edit'
}

/** The program may not be seen otherwise by a person who approves it, so nothing of a command is left out. */
function ownTitle(name: string, input: unknown, workdir: string): string {
  const fields = fieldsOfInput(input)
  const { command, questions } = fields
  if (name === 'Bash' && typeof command === 'string') return showHidden(command)
  if (Array.isArray(questions)) return questions.map((each) => titleOfQuestion(each)).join(' ') || name
  const path = pathIn(name, fields)
  const what = path === undefined ? titleOf(name, mapStrings(input, showHidden)) : shortPath(path, workdir)
  const how = name === 'FileEditor' && typeof command === 'string' ? command : name
  return showHidden(what === '' ? how : `${how} ${what}`)
}

const titleOfQuestion = (askedQuestions: unknown): string => {
  const { question } = fieldsOfInput(askedQuestions)
  return typeof question === 'string' ? showHidden(question) : ''
}

function shortPath(path: string, workdir: string): string {
  const short = relative(workdir, resolve(workdir, path))
  return short === '' || short.startsWith('..') ? path : short
}

/** Reads the field that the tool itself reads: an agent can send others, too. */
function pathIn(name: string, fields: Readonly<Record<string, unknown>>): string | undefined {
  const field = PATH_FIELDS[name]
  const isOther = !Object.hasOwn(KINDS, name)
  const path = field === undefined ? isOther && (fields['file_path'] ?? fields['path']) : fields[field]
  return typeof path === 'string' && path !== '' ? path : undefined
}

/** The path of a file in the headers of a patch. */
const PATCHED = /^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm

function locationsOf(name: string, input: unknown, workdir: string): ToolCallLocation[] {
  const fields = fieldsOfInput(input)
  const path = pathIn(name, fields)
  const patch = name === 'apply_patch' ? patchIn(input) : undefined
  const paths = patch === undefined ? [] : [...patch.matchAll(PATCHED)].flatMap(([, file]) => file ?? [])
  const { view_range: range, offset } = fields
  const line: unknown = Array.isArray(range) ? range[0] : offset
  const isLine = typeof line === 'number' && Number.isSafeInteger(line) && line > 0
  if (path !== undefined) return [{ path: resolve(workdir, path), ...(isLine && { line }) }]
  return paths.map((each) => ({ path: resolve(workdir, each) }))
}

function patchIn(input: unknown): string | undefined {
  const { input: patch } = fieldsOfInput(input)
  return typeof patch === 'string' && patch.startsWith('*** Begin Patch') ? patch : undefined
}

const PATH_FIELDS: Readonly<Record<string, string>> = {
  Read: 'file_path',
  Write: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  FileEditor: 'path',
  Glob: 'path',
  Grep: 'path',
}

type Fields = Readonly<Record<string, unknown>>
/** What a call changes, and the fields of its input that this shows as a whole. */
type CallChanges = { readonly content: ToolCallContent[]; readonly shows: readonly string[] }
const NOTHING: CallChanges = { content: [], shows: [] }

/** The fields of the old and of the new text, as the tool itself reads them. */
function pairOf(name: string, { command }: Fields): readonly [string | undefined, string] | undefined {
  if (name === 'Write') return [undefined, 'content']
  if (name === 'Edit') return ['old_string', 'new_string']
  if (name !== 'FileEditor') return undefined
  if (command === 'create') return [undefined, 'file_text']
  if (command === 'str_replace') return ['old_str', 'new_str']
  return command === 'insert' ? [undefined, 'new_str'] : undefined
}

function changesOf(name: string, input: unknown, workdir: string): CallChanges {
  const patch = name === 'apply_patch' ? patchIn(input) : undefined
  if (patch !== undefined) return { content: [textContent(fence(showHidden(patch), 'diff'))], shows: ['input'] }
  const fields = fieldsOfInput(input)
  const field = PATH_FIELDS[name]
  const path = pathIn(name, fields)
  if (field === undefined || path === undefined) return NOTHING
  const absolute = resolve(workdir, path)
  if (name === 'MultiEdit') return changesIn(fields, absolute, field)
  const pair = pairOf(name, fields)
  if (!pair) return NOTHING
  const [oldName, newName] = pair
  const [oldText, newText] = [oldName === undefined ? undefined : fields[oldName], fields[newName]]
  if (typeof newText !== 'string' || (oldName !== undefined && typeof oldText !== 'string')) return NOTHING
  const before = typeof oldText === 'string' ? oldText : fields['insert_line'] === undefined ? null : ''
  const shows = [field, newName, ...(oldName === undefined ? [] : [oldName])]
  return { content: [diffOf(absolute, before, newText)], shows }
}

/** What it shows is decided about, and not applied: the agent writes the file. */
const diffOf = (path: string, oldText: string | null, newText: string): ToolCallContent => ({
  type: 'diff',
  path: showHidden(path),
  oldText: oldText === null ? null : showHidden(oldText),
  newText: showHidden(newText),
})

/** Returns changes only if each edit is a pair of texts, and nothing else. */
function changesIn({ edits }: Fields, path: string, field: string): CallChanges {
  if (!Array.isArray(edits)) return NOTHING
  const pairs = edits.map((edit) => fieldsOfInput(edit))
  const content = pairs.flatMap(({ old_string: oldText, new_string: newText, ...rest }): ToolCallContent[] => {
    const isPair = typeof oldText === 'string' && typeof newText === 'string' && Object.keys(rest).length === 0
    return isPair ? [diffOf(path, oldText, newText)] : []
  })
  return content.length === pairs.length ? { content, shows: [field, 'edits'] } : NOTHING
}

/** All of a call, for a person who decides about it: its command, its changes and every other argument. */
export function wholeCall(name: string, input: unknown, workdir: string, reason: string): ToolCallContent[] {
  const fields = fieldsOfInput(input)
  const { command, ...others } = fields
  const isCommand = name === 'Bash' && typeof command === 'string'
  const changes = changesOf(name, input, workdir)
  const rest = isCommand ? others : changes.content.length > 0 ? without(fields, changes.shows) : input
  const isEmpty = rest === undefined || (rest !== input && Object.keys(fieldsOfInput(rest)).length === 0)
  return [
    ...(reason === '' ? [] : [textContent(showHidden(reason))]),
    ...(isCommand ? [textContent(fence(showHidden(command), 'sh'))] : []),
    ...changes.content,
    ...(isEmpty ? [] : [textContent(fence(JSON.stringify(mapStrings(rest, showHidden), null, 2), 'json'))]),
  ]
}

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

export const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } })

/** A block of code that its text cannot end. */
export function fence(text: string, language = ''): string {
  const longest = text.matchAll(/`+/g).reduce((most, [run]) => Math.max(most, run.length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

/** Editors send absolute paths only. */
export const isAbsolutePath = isAbsolute
