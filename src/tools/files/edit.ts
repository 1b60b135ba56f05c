/** The `Edit` and `MultiEdit` tools: replace texts in a file that the model knows. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { z } from 'zod'
import { EditorError } from '../editor/editor-faults.ts'
import { showEdit, viewOutcome } from '../editor/file-view.ts'
import type { Edit } from '../editor/text-edit.ts'
import { applyEdit, difference } from '../editor/text-edit.ts'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { AgentFiles } from './agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'
import { replaceEvery, replaceOnce } from './replace-text.ts'

const FilePath = z.string().min(1).describe('Absolute path of the file.')

const Replacement = {
  old_string: z
    .string()
    .describe(
      'The text to replace, exactly as in the file, without line numbers. Empty: create a file that is missing.',
    ),
  new_string: z.string().describe('The text to put in its place.'),
  replace_all: z.boolean().default(false).describe('Replace every occurrence; otherwise there must be exactly one.'),
}

const EditInput = z.object({ file_path: FilePath, ...Replacement })
type EditInput = z.infer<typeof EditInput>

/** A larger edit would be a new file. */
const MAX_EDITS = 200

const MultiEditInput = z.object({
  file_path: FilePath,
  edits: z
    .array(z.object(Replacement))
    .min(1)
    .max(MAX_EDITS)
    .describe('Applied in order, each to the result of the one before.'),
})
type MultiEditInput = z.infer<typeof MultiEditInput>

const RULES = `- The file must have been read in this conversation, and must not have changed since.
- \`old_string\` must match the file exactly, with all whitespace, and must occur once: include lines around it to make it unique, or set \`replace_all\`.
- Encoding and line endings of the file are kept: write line endings as newlines.`

export function createEdit(files: AgentFiles): Tool<EditInput> {
  return {
    name: 'Edit',
    description: `Replaces a text in a file.\n\n${RULES}`,
    input: EditInput,
    output: z.string(),
    access: ({ file_path, old_string }) => ({ kind: 'edit', paths: [file_path], isWhole: old_string === '' }),
    run: ({ file_path, ...wantedEdit }, context) =>
      files.change(context, () => edit(files, absolutePath(context.workdir, file_path), wantedEdit)),
  }
}

export function createMultiEdit(files: AgentFiles): Tool<MultiEditInput> {
  return {
    name: 'MultiEdit',
    description: `Makes several replacements in one file: all of them, or none if one fails.\n\n${RULES}`,
    input: MultiEditInput,
    output: z.string(),
    access: ({ file_path, edits }) => ({
      kind: 'edit',
      paths: [file_path],
      isWhole: edits.some(({ old_string }) => old_string === ''),
    }),
    run: ({ file_path, edits }, context) =>
      files.change(context, () => multiEdit(files, absolutePath(context.workdir, file_path), edits, context.signal)),
  }
}

type WantedEdit = Omit<EditInput, 'file_path'>

async function edit(files: AgentFiles, path: string, wantedEdit: WantedEdit): Promise<ToolOutcome> {
  if (wantedEdit.old_string === '') return await create(files, path, wantedEdit.new_string)
  const { file, decoded } = await openKnown(files, path)
  const { text, change, count } = await replace(path, decoded.text, wantedEdit)
  await files.writeText(path, file, { ...decoded, text })
  await yieldToLoop()
  const snippet = await showEdit(path, text, change, files.redact)
  const times = wantedEdit.replace_all ? ` ${count} occurrences were replaced.` : ''
  return viewOutcome({ ...snippet, text: `The file ${path} has been edited.${times} ${snippet.text}` })
}

async function multiEdit(
  files: AgentFiles,
  path: string,
  edits: readonly WantedEdit[],
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const [first, ...others] = edits
  const isNew = first?.old_string === '' && (await files.look(path)).kind === 'missing'
  const openedText = isNew ? undefined : await openKnown(files, path)
  let text = openedText?.decoded.text ?? first?.new_string ?? ''
  const doneParts: string[] = isNew ? ['created the file'] : []
  for (const wantedEdit of isNew ? others : edits) {
    if (signal.aborted) return INTERRUPTED
    const number = doneParts.length + 1
    const replacedText = await replace(path, text, wantedEdit).catch((error: unknown) => {
      if (!(error instanceof EditorError)) throw error
      throw new EditorError(`Edit ${number} of ${edits.length} failed, and none was made. ${error.message}`)
    })
    text = replacedText.text
    doneParts.push(`replaced ${replacedText.count === 1 ? 'one occurrence' : `${replacedText.count} occurrences`}`)
  }
  if (openedText) await files.writeText(path, openedText.file, { ...openedText.decoded, text })
  else await create(files, path, text)
  const list = doneParts.map((what, at) => `${at + 1}. ${what}`).join('\n')
  return { output: `Made ${edits.length} edits in ${path}:\n${list}` }
}

const INTERRUPTED = failure('interrupted', 'The call was interrupted; nothing was changed.')

async function create(files: AgentFiles, path: string, text: string): Promise<ToolOutcome> {
  const foundEntry = await files.look(path, 0)
  if (foundEntry.kind !== 'missing')
    throw new EditorError(`${path} exists. Give the text to replace in \`old_string\`, or use Write.`)
  await files.writeText(path, foundEntry, { text, encoding: 'utf-8', hasBom: false })
  return { output: `File created successfully at: ${path}` }
}

async function openKnown(files: AgentFiles, path: string) {
  const openedText = await files.openText(path)
  await files.requireRead(path, openedText.file)
  return openedText
}

type ReplacedText = { readonly text: string; readonly change: Edit; readonly count: number }

async function replace(path: string, text: string, wantedEdit: WantedEdit): Promise<ReplacedText> {
  const { old_string, new_string, replace_all } = wantedEdit
  if (old_string === '') throw new EditorError('`old_string` is empty. Give the text to be replaced.')
  if (old_string === new_string)
    throw new EditorError('No replacement was performed: `old_string` and `new_string` are the same.')
  const searchedFile = { path, parameter: 'old_string' }
  if (replace_all) {
    const all = await replaceEvery(text, [old_string, new_string], searchedFile)
    return { ...all, change: difference(text, all.text) }
  }
  const change = await replaceOnce(text, [old_string, new_string], searchedFile, ', or set replace_all')
  return { text: applyEdit(text, change), change, count: 1 }
}
