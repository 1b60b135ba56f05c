/** A tool for files on a directory of its own, as a conversation has it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentFiles } from '../../../src/tools/files/agent-files.ts'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { PdfReader } from '../../../src/tools/pdf/pdf-reader.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import type { Tool, ToolContext } from '../../../src/tools/tool.ts'
import type { ToolOutcome } from '../../../src/state/tool-call.ts'
import { createEditorFiles } from '../../../src/files/editor-files.ts'
import { UnfinishedFiles } from '../../../src/files/jail/unfinished-files.ts'
import { makeDirectory } from '../../files/editor-fixture.ts'
import { contextIn } from '../tool-fixture.ts'

/** The editor alone. */
export const openEditor = () => openFiles(createFileEditor)

/** `make` makes the tool that is called unless another is named; all tools work with the same files. */
export async function openFiles(make: (files: AgentFiles, pdfs: PdfReader) => Tool) {
  // On a machine with other work, two seconds of work can take a minute.
  const pdfs = new PdfReader({ timeoutMs: PATIENCE_MS })
  const root = await makeDirectory()
  const [workdir, server, readonly] = [join(root, 'work'), join(root, 'server'), join(root, 'readonly')]
  for (const directory of [workdir, server, readonly]) await mkdir(directory)
  const unfinished = new UnfinishedFiles(join(root, 'unfinished'))
  const open = () =>
    new AgentFiles({
      files: createEditorFiles(() => ({ forbidden: [server, '/proc'], readable: [readonly] }), unfinished),
      stateDirectory: server,
      // Plain, so that tests can look at it and make some of it up.
      sealer: { seal: (content) => content, unseal: (sealed) => sealed },
      redact: async (text) => text.replaceAll('hunter2-hunter2', '<secret:PIN>'),
    })
  let files = open()
  let tool = make(files, pdfs)
  const at = (name: string) => join(workdir, name)
  const call = (input: object, more: Partial<ToolContext> = {}): Promise<ToolOutcome> =>
    tool.run(tool.input.parse(input), contextIn(workdir, more))
  return {
    workdir,
    server,
    /** What is in there can be read, but not changed. */
    readonly,
    at,
    call,
    get tool() {
      return tool
    },
    /** Calls another tool. */
    callWith: (other: (files: AgentFiles, pdfs: PdfReader) => Tool, input: object): Promise<ToolOutcome> => {
      const called = other(files, pdfs)
      return called.run(called.input.parse(input), contextIn(workdir))
    },
    /** As after a restart of the server. */
    reopen: () => {
      files = open()
      tool = make(files, pdfs)
    },
    write: (name: string, content: string | Buffer) => writeFile(at(name), content),
    read: (name: string) => readFile(at(name), 'utf8'),
    bytes: (name: string) => readFile(at(name)),
    /** The text that the model reads. The call must not fail. */
    say: async (input: object): Promise<string> => {
      const { output, error } = await call(input)
      if (error) throw new Error(error.message)
      return output as string
    },
    /** Why the call failed. */
    fault: async (input: object): Promise<string> => {
      const { error, output } = await call(input)
      if (!error) throw new Error(`it did not fail: ${JSON.stringify(output)}`)
      return error.message
    },
  }
}
