/** How a tool call looks in an editor: its kind, a title with the whole command, its files and its changes. */
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import { isAbsolute, relative, resolve } from 'node:path'
import { fieldsOfInput, titleOf } from '../../contract/events/call-title.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { revealText } from '../chat/state/clean-text.ts'

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
    title: agent === undefined ? title : `${revealText(agent)}: ${title}`,
    locations: locationsOf(input, workdir),
    rawInput: input,
    content: changesOf(input, workdir),
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
  if (name === 'Bash' && typeof command === 'string') return revealText(command)
  if (Array.isArray(questions)) return questions.map((each) => titleOfQuestion(each)).join(' ') || name
  const path = pathIn(fields)
  const what = path === undefined ? titleOf(input) : shortPath(path, workdir)
  const how = name === 'FileEditor' && typeof command === 'string' ? command : name
  return revealText(what === '' ? how : `${how} ${what}`)
}

const titleOfQuestion = (asked: unknown): string => {
  const { question } = fieldsOfInput(asked)
  return typeof question === 'string' ? revealText(question) : ''
}

function shortPath(path: string, workdir: string): string {
  const short = relative(workdir, resolve(workdir, path))
  return short === '' || short.startsWith('..') ? path : short
}

function pathIn(fields: Readonly<Record<string, unknown>>): string | undefined {
  const path = fields['file_path'] ?? fields['path']
  return typeof path === 'string' && path !== '' ? path : undefined
}

/** The path of a file in the headers of a patch. */
const PATCHED = /^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm

function locationsOf(input: unknown, workdir: string): ToolCallLocation[] {
  const fields = fieldsOfInput(input)
  const path = pathIn(fields)
  const patch = patchIn(input)
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

const PAIRS = [
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['', 'file_text'],
  ['', 'content'],
] as const

function changesOf(input: unknown, workdir: string): ToolCallContent[] {
  const patch = patchIn(input)
  if (patch !== undefined) return [textContent(fence(revealText(patch), 'diff'))]
  const fields = fieldsOfInput(input)
  const given = pathIn(fields)
  if (given === undefined) return []
  const path = resolve(workdir, given)
  const { edits } = fields
  if (Array.isArray(edits)) return edits.flatMap((edit) => changeIn(fieldsOfInput(edit), path))
  return changeIn(fields, path)
}

function changeIn(fields: Readonly<Record<string, unknown>>, path: string): ToolCallContent[] {
  for (const [oldName, newName] of PAIRS) {
    const [oldText, newText] = [fields[oldName], fields[newName]]
    if (typeof newText !== 'string' || (oldText !== undefined && typeof oldText !== 'string')) continue
    return [{ type: 'diff', path, oldText: oldText ?? (fields['insert_line'] === undefined ? null : ''), newText }]
  }
  return []
}

/** All of a call, for a person who decides about it: its command, its changes and every other argument. */
export function wholeCall(name: string, input: unknown, workdir: string, reason: string): ToolCallContent[] {
  const fields = fieldsOfInput(input)
  const { command, ...others } = fields
  const isCommand = name === 'Bash' && typeof command === 'string'
  const changes = changesOf(input, workdir)
  const rest = isCommand ? others : changes.length > 0 ? withoutTexts(fields) : input
  const isEmpty = rest === undefined || (rest !== input && Object.keys(fieldsOfInput(rest)).length === 0)
  return [
    ...(reason === '' ? [] : [textContent(revealText(reason))]),
    ...(isCommand ? [textContent(fence(revealText(command), 'sh'))] : []),
    ...changes,
    ...(isEmpty ? [] : [textContent(fence(revealText(JSON.stringify(rest, null, 2)), 'json'))]),
  ]
}

/** What the changes show is left out. */
const SHOWN = new Set<string>([...PAIRS.flat(), 'edits', 'input', 'path', 'file_path'])

const withoutTexts = (fields: Readonly<Record<string, unknown>>) =>
  withoutUndefined(Object.fromEntries(Object.entries(fields).filter(([name]) => !SHOWN.has(name))))

export const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } })

/** A block of code that its text cannot end. */
export function fence(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

/** Editors send absolute paths only. */
export const isAbsolutePath = isAbsolute
