/**
 * The `FileEditor` tool. Its commands, rules and messages follow the editor that models are trained with (Anthropic's
 * text editor tool, and OpenHands' version of it), so that what they have learnt applies here.
 */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { z } from 'zod'
import { UserPart } from '../../contract/values/message.ts'
import { imageType } from '../editor/image-type.ts'
import { EditorError, alreadyExists, doesNotExist, isDirectory, isRequired } from '../editor/editor-faults.ts'
import { showDirectory, showEdit, showText, viewOutcome } from '../editor/file-view.ts'
import type { Edit } from '../editor/text-edit.ts'
import { applyEdit, countLines, difference, insertionAfter } from '../editor/text-edit.ts'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { asFile, decode, encode, showImage } from '../editor/editor-content.ts'
import type { AgentFiles, OpenText } from './agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'
import { contentOf } from './agent-files.ts'
import { replaceOnce } from './replace-text.ts'

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

- \`view\` shows a file with line numbers as \`cat -n\` does, or the part of it in \`view_range\`; a directory as the non-hidden files and directories up to 2 levels deep; a PNG, JPEG, GIF or WebP file as an image. Long output is cut, and says where to continue.
- \`create\` makes a new file, and the directories it needs. It never overwrites one that exists.
- \`str_replace\` replaces \`old_str\` by \`new_str\`. \`old_str\` must match exactly one or more consecutive lines of the file, with all whitespace and indentation and without the line numbers of a view, and must occur only once: include enough lines around the change to make it unique.
- \`insert\` inserts \`new_str\` as separate lines after line \`insert_line\`.
- \`undo_edit\` takes back the last edit that this tool made to the file, also several in a row. The undo of a \`create\` removes the file.

Encoding and line ends of a file are kept: write line ends simply as newlines.`

export function createFileEditor(files: AgentFiles): Tool<FileEditorInput> {
  return {
    name: 'FileEditor',
    description: DESCRIPTION,
    input: FileEditorInput,
    output: FileEditorOutput,
    access: ({ command, path }) =>
      command === 'view'
        ? { kind: 'read', paths: [path] }
        : { kind: 'edit', paths: [path], isWhole: MAKES_FILES.has(command) },
    run: (input, context) => {
      const path = absolutePath(context.workdir, input.path)
      return files.change(context, () => COMMANDS[input.command](files, { ...input, path }))
    },
  }
}

/** An undo may bring back a whole file that was removed. */
const MAKES_FILES: ReadonlySet<FileEditorInput['command']> = new Set(['create', 'undo_edit'])

type Command = (files: AgentFiles, input: FileEditorInput) => Promise<ToolOutcome>

const COMMANDS: Readonly<Record<FileEditorInput['command'], Command>> = {
  view: async (files, { path, view_range }) => {
    const foundEntry = await files.look(path)
    if (foundEntry.kind === 'directory') {
      if (view_range)
        throw new EditorError(`\`view_range\` is not allowed when \`path\` points to a directory: ${path}.`)
      return viewOutcome(showDirectory(path, await files.list(path)))
    }
    const file = asFile(path, foundEntry)
    const type = imageType(file.bytes)
    const text = type ? '' : decode(path, file.bytes).text
    await files.noteRead(file)
    await yieldToLoop()
    return type ? showImage(path, type, file.bytes) : viewOutcome(await showText(path, text, view_range, files.redact))
  },

  create: async (files, { path, file_text }) => {
    if (file_text === undefined) throw isRequired('file_text', 'create')
    const foundEntry = await files.look(path, 0)
    if (foundEntry.kind === 'directory') throw isDirectory(path)
    if (foundEntry.kind !== 'missing') throw alreadyExists(path)
    await files.write(foundEntry, encode(path, { text: file_text, encoding: 'utf-8', hasBom: false }))
    return { output: `File created successfully at: ${path}` }
  },

  str_replace: async (files, { path, old_str, new_str = '' }) => {
    if (old_str === undefined) throw isRequired('old_str', 'str_replace')
    if (old_str === '') throw new EditorError('`old_str` is empty. Give the text to be replaced, or use `insert`.')
    if (new_str === old_str)
      throw new EditorError('No replacement was performed. `new_str` and `old_str` must be different.')
    const openedText = await files.openText(path)
    const edit = await replaceOnce(openedText.decoded.text, [old_str, new_str], { path, parameter: 'old_str' })
    return await editText(files, path, openedText, edit)
  },

  insert: async (files, { path, insert_line, new_str }) => {
    if (insert_line === undefined) throw isRequired('insert_line', 'insert')
    if (new_str === undefined) throw isRequired('new_str', 'insert')
    const openedText = await files.openText(path)
    const { text } = openedText.decoded
    const lines = countLines(text)
    if (insert_line < 0 || insert_line > lines) {
      throw new EditorError(
        `Invalid \`insert_line\`: ${insert_line}. It should be within the range of lines of the file: [0, ${lines}].`,
      )
    }
    return await editText(files, path, openedText, insertionAfter(text, insert_line, new_str))
  },

  undo_edit: async (files, { path }) => {
    const foundEntry = await files.look(path)
    const file = foundEntry.kind === 'missing' ? foundEntry : asFile(path, foundEntry)
    const now = contentOf(file)
    const last = await files.lastEdit(file)
    if (!last)
      throw foundEntry.kind === 'missing' ? doesNotExist(path) : new EditorError(`No edit history found for ${path}.`)
    if (!last.isResult(now)) {
      const what = foundEntry.kind === 'missing' ? 'has been removed' : 'has been changed by something else'
      throw new EditorError(
        `${path} ${what} since its last edit with this tool; undoing that would lose the change. Edit the file as it is.`,
      )
    }
    await files.put(file, last.before)
    await last.forget()
    if (!last.before)
      return { output: `Last edit to ${path} undone successfully. It had created the file, which is removed now.` }
    const text = decode(path, last.before).text
    await yieldToLoop()
    const snippet = await showEdit(path, text, difference(now ? decode(path, now).text : '', text), files.redact)
    return viewOutcome({ ...snippet, text: `Last edit to ${path} undone successfully. ${snippet.text}` })
  },
}

async function editText(
  files: AgentFiles,
  path: string,
  { file, decoded }: OpenText,
  edit: Edit,
): Promise<ToolOutcome> {
  await yieldToLoop()
  const text = applyEdit(decoded.text, edit)
  await files.writeText(path, file, { ...decoded, text })
  await yieldToLoop()
  const snippet = await showEdit(path, text, edit, files.redact)
  const advice = 'Review the changes and make sure they are as expected. Edit the file again if necessary.'
  return viewOutcome({ ...snippet, text: `The file ${path} has been edited. ${snippet.text}${advice}` })
}
