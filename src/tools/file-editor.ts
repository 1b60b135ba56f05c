/**
 * The `FileEditor` tool. In its commands, their rules and its words it follows the editor that models have been trained
 * with (Anthropic's text editor tool, and OpenHands' version of it), so that what they learnt there holds here.
 */
import { isAbsolute, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { UserPart } from '../contract/message.ts'
import { imageType } from './image-type.ts'
import { Queue } from '../lib/queue.ts'
import type { DecodedText } from './text-encoding.ts'
import { createEditHistory } from './edit-history.ts'
import type { Content, EditHistory, ContentSealer } from './edit-history.ts'
import type { EditorFiles, FoundFile, Missing } from '../files/editor-files.ts'
import { FileRefusal } from '../files/file-refusal.ts'
import { EditorError, alreadyExists, doesNotExist, isDirectory, isRequired, mebibytes } from './editor-faults.ts'
import { explainNoMatch } from './edit-hints.ts'
import type { View } from './file-view.ts'
import { showDirectory, showEdit, showText } from './file-view.ts'
import type { Edit } from './text-edit.ts'
import { applyEdit, countLines, difference, findMatches, insertionAfter, linesAt, replacementAt } from './text-edit.ts'
import type { Tool, ToolOutcome } from './tool.ts'
import { MAX_FILE_BYTES, asFile, decode, encode, showImage } from './editor-content.ts'

const FileEditorInput = z.object({
  command: z
    .enum(['view', 'create', 'str_replace', 'insert', 'undo_edit'])
    .describe('The command to run: `view`, `create`, `str_replace`, `insert` or `undo_edit`.'),
  path: z.string().min(1).describe('Absolute path of a file or directory, e.g. `/work/file.py`.'),
  file_text: z.string().optional().describe('Required for `create`: the content of the file to be created.'),
  old_str: z.string().optional().describe('Required for `str_replace`: the text in the file that is to be replaced.'),
  new_str: z
    .string()
    .optional()
    .describe(
      'For `str_replace`: the new text; without it the old one is deleted. Required for `insert`: the lines to insert.',
    ),
  insert_line: z
    .int()
    .optional()
    .describe('Required for `insert`: the line after which `new_str` is inserted; 0 is the beginning of the file.'),
  view_range: z
    .array(z.int())
    .optional()
    .describe(
      'For `view` of a file: the lines to show, e.g. `[11, 12]`, counted from 1; `[11, -1]` shows all from line 11.',
    ),
})
type FileEditorInput = z.infer<typeof FileEditorInput>

const FileEditorOutput = z.union([z.string(), z.array(UserPart)])

const DESCRIPTION = `Views, creates and edits text files, and shows images.

- \`view\` shows a file with line numbers as \`cat -n\` does, or the part of it in \`view_range\`; a directory as the non-hidden files and directories up to 2 levels deep; a PNG, JPEG, GIF or WebP file as an image. Long output is cut, and says where to go on.
- \`create\` makes a new file, and the directories it needs. It never overwrites one that exists.
- \`str_replace\` replaces \`old_str\` by \`new_str\`. \`old_str\` must match exactly one or more consecutive lines of the file, with all whitespace and indentation and without the line numbers of a view, and must occur only once: include enough lines around the change to make it unique.
- \`insert\` puts \`new_str\` in as lines of its own after line \`insert_line\`.
- \`undo_edit\` takes back the last edit that this tool made to the file, also several in a row. The undo of a \`create\` removes the file.

Encoding and line ends of a file are kept: write line ends simply as newlines.`

export type FileEditorDeps = {
  readonly files: EditorFiles
  /** Where what files were before their edits is kept. */
  readonly historyDirectory: string
  readonly sealer: ContentSealer
  /** Takes secrets out of what is shown in part only: cut off, they would not be found later. */
  readonly redact: (text: string) => Promise<string>
}

export function createFileEditor({ files, historyDirectory, sealer, redact }: FileEditorDeps): Tool<FileEditorInput> {
  const editor: Editor = { files, redact, history: createEditHistory({ directory: historyDirectory, sealer }) }
  const calls = new Queue({ limit: 1 })
  return {
    name: 'FileEditor',
    description: DESCRIPTION,
    input: FileEditorInput,
    output: FileEditorOutput,
    run: (input, { workdir }) => calls.run(() => runCommand(editor, { ...input, path: absolute(workdir, input.path) })),
  }
}

type Editor = Pick<FileEditorDeps, 'files' | 'redact'> & { readonly history: EditHistory }

function absolute(workdir: string, path: string): string {
  const whole = isAbsolute(path) ? path : `${workdir}/${path}`
  // Where `..` leads after a link is for the file system to say.
  return whole.split('/').includes('..') ? whole : join(whole)
}

async function runCommand(editor: Editor, input: FileEditorInput): Promise<ToolOutcome> {
  try {
    if (input.path.includes('\0')) throw new EditorError('`path` holds a NUL character.')
    return await COMMANDS[input.command](editor, input)
  } catch (error) {
    if (error instanceof EditorError) return failure('invalid_input', error.message)
    if (error instanceof FileRefusal) return failure(error.isForbidden ? 'denied' : 'failed', error.message)
    throw error
  }
}

const failure = (type: 'invalid_input' | 'failed' | 'denied', message: string): ToolOutcome => ({
  output: message,
  error: { type, message },
})

type Command = (editor: Editor, input: FileEditorInput) => Promise<ToolOutcome>

const COMMANDS: Readonly<Record<FileEditorInput['command'], Command>> = {
  view: async ({ files, redact }, { path, view_range }) => {
    const found = await files.look(path, MAX_FILE_BYTES)
    if (found.kind === 'directory') {
      if (view_range)
        throw new EditorError(`\`view_range\` is not allowed when \`path\` points to a directory: ${path}.`)
      return toOutcome(showDirectory(path, await files.list(path)))
    }
    const { bytes } = asFile(path, found)
    const type = imageType(bytes)
    if (type) return showImage(path, type, bytes)
    const { text } = decode(path, bytes)
    await nextTurn()
    return toOutcome(await showText(path, text, view_range, redact))
  },

  create: async (editor, { path, file_text }) => {
    if (file_text === undefined) throw isRequired('file_text', 'create')
    const found = await editor.files.look(path, 0)
    if (found.kind === 'directory') throw isDirectory(path)
    if (found.kind !== 'missing') throw alreadyExists(path)
    await change(editor, found, encode(path, { text: file_text, encoding: 'utf-8', hasBom: false }))
    return { output: `File created successfully at: ${path}` }
  },

  str_replace: async (editor, { path, old_str, new_str = '' }) => {
    if (old_str === undefined) throw isRequired('old_str', 'str_replace')
    if (old_str === '') throw new EditorError('`old_str` is empty. Give the text to be replaced, or use `insert`.')
    if (new_str === old_str)
      throw new EditorError('No replacement was performed. `new_str` and `old_str` must be different.')
    const { file, decoded } = await openText(editor, path)
    const edit = await replaceOnce(path, decoded.text, old_str, new_str)
    return await editText(editor, path, { file, decoded }, edit)
  },

  insert: async (editor, { path, insert_line, new_str }) => {
    if (insert_line === undefined) throw isRequired('insert_line', 'insert')
    if (new_str === undefined) throw isRequired('new_str', 'insert')
    const { file, decoded } = await openText(editor, path)
    const lines = countLines(decoded.text)
    if (insert_line < 0 || insert_line > lines) {
      throw new EditorError(
        `Invalid \`insert_line\`: ${insert_line}. It should be within the range of lines of the file: [0, ${lines}].`,
      )
    }
    return await editText(editor, path, { file, decoded }, insertionAfter(decoded.text, insert_line, new_str))
  },

  undo_edit: async ({ files, history, redact }, { path }) => {
    const found = await files.look(path, MAX_FILE_BYTES)
    const file = found.kind === 'missing' ? found : asFile(path, found)
    const now = contentOf(file)
    let last = await history.last(found.path)
    while (last && !last.left(now) && last.isMoot(now)) {
      await last.forget()
      last = await history.last(found.path)
    }
    if (!last)
      throw found.kind === 'missing' ? doesNotExist(path) : new EditorError(`No edit history found for ${path}.`)
    if (!last.left(now)) {
      const what = found.kind === 'missing' ? 'has been removed' : 'has been changed by something else'
      throw new EditorError(
        `${path} ${what} since its last edit with this tool; undoing that would lose the change. Edit the file as it is.`,
      )
    }
    await put(files, file, last.before)
    await last.forget()
    if (!last.before)
      return { output: `Last edit to ${path} undone successfully. It had created the file, which is removed now.` }
    const text = decode(path, last.before).text
    await nextTurn()
    const snippet = await showEdit(path, text, difference(now ? decode(path, now).text : '', text), redact)
    return toOutcome({ ...snippet, text: `Last edit to ${path} undone successfully. ${snippet.text}` })
  },
}

async function replaceOnce(path: string, text: string, oldText: string, newText: string): Promise<Edit> {
  const { searched, starts } = await findMatches(text, oldText)
  const [start] = starts
  if (start === undefined) throw new EditorError(await explainNoMatch(path, text, oldText))
  if (starts.length > 1) {
    const lines = linesAt(searched, starts).join(', ')
    throw new EditorError(
      `No replacement was performed. Multiple occurrences of old_str in lines [${lines}] of ${path}. Please ensure it is unique: include more of the lines around it.`,
    )
  }
  return replacementAt(text, start, oldText, newText)
}

type OpenText = { readonly file: FoundFile; readonly decoded: DecodedText }

async function openText({ files }: Editor, path: string): Promise<OpenText> {
  const file = asFile(path, await files.look(path, MAX_FILE_BYTES))
  const decoded = decode(path, file.bytes)
  // A file of many megabytes takes a while in each step: between two of them others have a turn.
  await nextTurn()
  return { file, decoded }
}

async function editText(editor: Editor, path: string, { file, decoded }: OpenText, edit: Edit): Promise<ToolOutcome> {
  await nextTurn()
  const text = applyEdit(decoded.text, edit)
  const bytes = encode(path, { ...decoded, text })
  if (bytes.length > MAX_FILE_BYTES) {
    throw new EditorError(
      `${path} would be larger than the ${mebibytes(MAX_FILE_BYTES)} that can be edited; nothing was changed.`,
    )
  }
  await change(editor, file, bytes)
  await nextTurn()
  const snippet = await showEdit(path, text, edit, editor.redact)
  const advice = 'Review the changes and make sure they are as expected. Edit the file again if necessary.'
  return toOutcome({ ...snippet, text: `The file ${path} has been edited. ${snippet.text}${advice}` })
}

/** Noted before it is made: an edit that cannot be undone must not be, and one that a crash prevented is found to be moot. */
async function change({ files, history }: Editor, found: FoundFile | Missing, bytes: Buffer): Promise<void> {
  const note = await history.note(found.path, contentOf(found), bytes)
  try {
    await put(files, found, bytes)
  } catch (error) {
    await note.forget()
    throw error
  }
}

async function put(files: EditorFiles, found: FoundFile | Missing, content: Content): Promise<void> {
  if (found.kind !== 'missing') await (content ? files.replace(found, content) : files.remove(found))
  else if (content) await files.create(found, content)
}

const contentOf = (found: FoundFile | Missing): Content => (found.kind === 'file' ? found.bytes : undefined)

const toOutcome = ({ text, isCut }: View): ToolOutcome => ({ output: text, ...(isCut && { truncated: true }) })
