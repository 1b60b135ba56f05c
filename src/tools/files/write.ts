/** The `Write` tool: creates a file, or replaces the whole content of one that the model knows. */
import { z } from 'zod'
import { asFile } from '../editor/editor-content.ts'
import { EditorError } from '../editor/editor-faults.ts'
import { withReturns } from '../editor/line-ends.ts'
import type { DecodedText } from '../editor/text-encoding.ts'
import { decodeText, encodeText } from '../editor/text-encoding.ts'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import type { AgentFiles } from './agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'

const WriteInput = z.object({
  file_path: z.string().min(1).describe('Absolute path of the file.'),
  content: z.string().describe('The whole content of the file.'),
})
type WriteInput = z.infer<typeof WriteInput>

const DESCRIPTION = `Writes a whole file. It creates the file and missing directories, or replaces the file.

- An existing file must have been read in this conversation, and must not have changed since. To change a part of it, use an edit tool.
- The encoding and the line endings of an existing file are kept: write line endings as newlines.`

export function createWrite(files: AgentFiles): Tool<WriteInput> {
  return {
    name: 'Write',
    description: DESCRIPTION,
    input: WriteInput,
    output: z.string(),
    access: ({ file_path }) => ({ kind: 'edit', paths: [file_path], isWhole: true }),
    run: ({ file_path, content }, context) =>
      files.change(context, () => write(files, absolutePath(context.workdir, file_path), content)),
  }
}

/** Runs within `AgentFiles.change`. */
async function write(files: AgentFiles, path: string, text: string): Promise<ToolOutcome> {
  const foundEntry = await files.look(path)
  if (foundEntry.kind === 'directory') throw new EditorError(`${path} is a directory; give the path of a file.`)
  if (foundEntry.kind === 'missing') {
    await files.writeText(path, foundEntry, { text, encoding: 'utf-8', hasBom: false })
    return { output: `File created successfully at: ${path}` }
  }
  const file = asFile(path, foundEntry)
  await files.requireRead(path, file)
  const decodedText = withFormOf(file.bytes, text)
  await files.writeText(path, file, decodedText)
  return { output: `The file ${path} has been replaced.${changeOfEncoding(file.bytes, decodedText)}` }
}

/**
 * Returns the new text in the encoding of the old bytes, if possible, and with their line endings, if they are all
 * equal.
 */
function withFormOf(bytes: Buffer, text: string): DecodedText {
  const old = decodeText(bytes)
  if (!old) return { text, encoding: 'utf-8', hasBom: false }
  const usesReturns = old.text.includes('\r\n') && !/(^|[^\r])\n/.test(old.text) && !text.includes('\r')
  const decodedText = { ...old, text: usesReturns ? withReturns(text) : text }
  return encodeText(decodedText) ? decodedText : { ...decodedText, encoding: 'utf-8', hasBom: false }
}

function changeOfEncoding(bytes: Buffer, { encoding }: DecodedText): string {
  const before = decodeText(bytes)?.encoding
  return before === undefined || before === encoding ? '' : ` It was ${before} and is now ${encoding}.`
}
