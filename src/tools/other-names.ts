/** Tools under the names and with the parameters of other agents: each is one of ours behind them. */
import { z } from 'zod'
import { UserPart } from '../contract/message.ts'
import type { BashToolDeps } from './bash.ts'
import { createBashTool, cutBashOutput, renderBashOutput } from './bash.ts'
import { EditorError } from './editor/editor-faults.ts'
import type { AgentFiles } from './files/agent-files.ts'
import { absolutePath, toOutcome } from './files/agent-files.ts'
import { MAX_READ_LINES, read } from './files/read.ts'
import { write } from './files/write.ts'
import { pagesOf } from './pdf/pdf-answer.ts'
import type { PdfReader } from './pdf/pdf-reader.ts'
import type { Tool } from './tool.ts'

const Path = z.string().min(1).describe('Path of the file; a relative one begins at the working directory.')

const FileReadInput = z.object({
  path: Path,
  view_range: z
    .array(z.int())
    .length(2)
    .optional()
    .describe('The lines to show, from 1, as `[first, last]`; `[11, -1]` shows all from line 11.'),
  pages: z.string().optional().describe('Pages of a PDF, such as "1-5" or "3".'),
})
type FileReadInput = z.infer<typeof FileReadInput>

export function createFileRead(files: AgentFiles, pdfs: PdfReader): Tool<FileReadInput> {
  return {
    name: 'file_read',
    description:
      'Shows a text file with line numbers, up to 2000 lines at a time, an image as an image, or a notebook or a PDF as text.',
    input: FileReadInput,
    output: z.union([z.string(), z.array(UserPart)]),
    readOnly: true,
    access: ({ path }) => ({ kind: 'read', paths: [path] }),
    run: ({ path, view_range, pages }, { workdir, signal }) =>
      toOutcome(async () => {
        const wanted = { ...linesOf(view_range), pages: pagesOf(pages), signal }
        return await read({ files, pdfs }, absolutePath(workdir, path), wanted)
      }),
  }
}

function linesOf([first = 1, last = -1]: readonly number[] = []): { first: number; limit: number } {
  if (first < 1 || (last !== -1 && last < first))
    throw new EditorError(
      `Invalid \`view_range\`: [${first}, ${last}]. It is [first, last], counted from 1; -1 is the end.`,
    )
  return { first, limit: last === -1 ? MAX_READ_LINES : last - first + 1 }
}

const FileWriteInput = z.object({ path: Path, content: z.string().describe('The whole content of the file.') })
type FileWriteInput = z.infer<typeof FileWriteInput>

export function createFileWrite(files: AgentFiles): Tool<FileWriteInput> {
  return {
    name: 'file_write',
    description:
      'Creates a file, or replaces all of one that was read before and has not changed since. Encoding and line endings are kept.',
    input: FileWriteInput,
    output: z.string(),
    access: ({ path }) => ({ kind: 'edit', paths: [path] }),
    run: ({ path, content }, { workdir }) => files.change(() => write(files, absolutePath(workdir, path), content)),
  }
}

const ShellExecInput = z.object({
  command: z.string().describe('What bash is to run.'),
  id: z.string().optional().describe('Another shell session, with its own state; made when it is new.'),
})
type ShellExecInput = z.infer<typeof ShellExecInput>

export function createShellExec(deps: BashToolDeps): Tool<ShellExecInput> {
  const bash = createBashTool(deps)
  const bashInput = ({ command, id }: ShellExecInput) =>
    bash.input.parse({ command, ...(id !== undefined && { session_id: id }) })
  return {
    name: 'shell_exec',
    description:
      'Runs a command in a persistent shell session: the working directory and variables stay for the next one. With a trailing `&` it runs in the background.',
    input: ShellExecInput,
    ...(bash.output && { output: bash.output }),
    render: renderBashOutput,
    cutOutput: cutBashOutput,
    access: (input) => bash.access?.(bashInput(input)) ?? { kind: 'other' },
    run: (input, context) => bash.run(bashInput(input), context),
  }
}
