/**
 * Shows tool calls to hooks as Claude Code's: tools with other names or parameters appear as the tool of Claude Code
 * that does the same, so that existing hooks also see what they do.
 */
import { isAbsolute, join } from 'node:path'

export type Input = Readonly<Record<string, unknown>>

/** A call as hooks see it. */
export type ShownCall = {
  readonly name: string
  /** What matchers are compared with. */
  readonly names: readonly string[]
  readonly input: Input
  /** Returns the input of the actual tool for an input that a hook has changed. */
  readonly toOwn: (updated: Input) => Input
}

type Translation = { readonly name: string; readonly fields: Readonly<Record<string, string>> }

/** `fields`: the names of parameters here, and those of Claude Code. */
const TOOLS: Readonly<Record<string, (input: Input) => Translation | undefined>> = {
  shell_exec: () => ({ name: 'Bash', fields: {} }),
  file_read: () => ({ name: 'Read', fields: { path: 'file_path' } }),
  file_write: () => ({ name: 'Write', fields: { path: 'file_path' } }),
  FileEditor: ({ command }) => (typeof command === 'string' ? EDITOR[command] : undefined),
}

const EDITOR: Readonly<Record<string, Translation>> = {
  view: { name: 'Read', fields: { path: 'file_path' } },
  create: { name: 'Write', fields: { path: 'file_path', file_text: 'content' } },
  str_replace: { name: 'Edit', fields: { path: 'file_path', old_str: 'old_string', new_str: 'new_string' } },
  insert: { name: 'Edit', fields: { path: 'file_path', new_str: 'new_string' } },
  undo_edit: { name: 'Edit', fields: { path: 'file_path' } },
}

/** It changes files, and no tool of Claude Code has its form. */
const ALSO_MATCHED: Readonly<Record<string, readonly string[]>> = { apply_patch: ['Edit', 'Write', 'MultiEdit'] }

export function showCall(name: string, input: Input, workdir: string): ShownCall {
  const translation = Object.hasOwn(TOOLS, name) ? TOOLS[name]?.(input) : undefined
  if (!translation)
    return { name, names: [name, ...(ALSO_MATCHED[name] ?? [])], input: absolute(input, workdir), toOwn: (own) => own }
  const { fields } = translation
  const shown = renamed(input, (field) => fields[field] ?? field)
  const back = new Map(Object.entries(fields).map(([own, theirs]) => [theirs, own]))
  return {
    name: translation.name,
    names: [translation.name, name],
    input: absolute(shown, workdir),
    toOwn: (updated) => renamed(updated, (field) => back.get(field) ?? field),
  }
}

const renamed = (input: Input, nameOf: (field: string) => string): Input =>
  Object.fromEntries(Object.entries(input).map(([field, value]) => [nameOf(field), value]))

/** Hooks of Claude Code expect absolute paths. */
function absolute(input: Input, workdir: string): Input {
  const { file_path: path } = input
  return typeof path !== 'string' || isAbsolute(path) ? input : { ...input, file_path: join(workdir, path) }
}
