/**
 * Shows tool calls to hooks as Claude Code's: tools with other names or parameters appear as the tool of Claude Code
 * that does the same, so that existing hooks also see what they do.
 */
import { earlierNames } from '../contract/values/earlier-tools.ts'
import { absolutePath } from '../policy/links/real-path.ts'

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

/** `fields`: the names of parameters here, and those of Claude Code. */
type Translation = { readonly name: string; readonly fields: ReadonlyMap<string, string> }

const as = (name: string, fields: Readonly<Record<string, string>>): Translation => ({
  name,
  fields: new Map(Object.entries(fields)),
})

/** The tool `FileEditor`, by its parameter `command`. */
const EDITOR: ReadonlyMap<unknown, Translation> = new Map([
  ['view', as('Read', { path: 'file_path' })],
  ['create', as('Write', { path: 'file_path', file_text: 'content' })],
  ['str_replace', as('Edit', { path: 'file_path', old_str: 'old_string', new_str: 'new_string' })],
  ['insert', as('Edit', { path: 'file_path', new_str: 'new_string' })],
  ['undo_edit', as('Edit', { path: 'file_path' })],
])

/** They change files, and no tool of Claude Code has their form. */
const ALSO_MATCHED: ReadonlyMap<string, readonly string[]> = new Map([['apply_patch', ['Edit', 'Write', 'MultiEdit']]])

export function showCall(name: string, input: Input, workdir: string): ShownCall {
  const translation = name === 'FileEditor' ? EDITOR.get(input['command']) : undefined
  if (!translation) {
    const names = [name, ...(ALSO_MATCHED.get(name) ?? earlierNames(name))]
    return { name, names, input: absolute(input, workdir), toOwn: (own) => own }
  }
  const { fields } = translation
  const back = new Map([...fields].map(([own, theirs]) => [theirs, own]))
  return {
    name: translation.name,
    names: [translation.name, name],
    input: absolute(renameFields(input, fields), workdir),
    toOwn: (updatedInput) => renameFields(updatedInput, back),
  }
}

const renameFields = (input: Input, names: ReadonlyMap<string, string>): Input =>
  Object.fromEntries(Object.entries(input).map(([field, value]) => [names.get(field) ?? field, value]))

/** Hooks of Claude Code expect absolute paths. They are shown the one that the tool opens. */
function absolute(input: Input, workdir: string): Input {
  const { file_path: path } = input
  return typeof path === 'string' ? { ...input, file_path: absolutePath(workdir, path) } : input
}
