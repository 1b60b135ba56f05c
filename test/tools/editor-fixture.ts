/** An editor on a directory of its own, as a conversation has it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFileEditor } from '../../src/tools/file-editor.ts'
import type { ToolOutcome } from '../../src/tools/tool.ts'
import { createEditorFiles } from '../../src/files/editor-files.ts'
import { makeDirectory } from '../files/editor-fixture.ts'
import { contextIn } from './tool-fixture.ts'

export async function openEditor() {
  const root = await makeDirectory()
  const [workdir, server] = [join(root, 'work'), join(root, 'server')]
  await mkdir(workdir)
  await mkdir(server)
  const open = () =>
    createFileEditor({
      files: createEditorFiles(() => ({ forbidden: [server, '/proc'] })),
      historyDirectory: join(server, 'edits'),
      // Plain, so that tests can look at it and make some of it up.
      sealer: { seal: (content) => content, unseal: (sealed) => sealed },
      redact: async (text) => text.replaceAll('hunter2-hunter2', '<secret:PIN>'),
    })
  let tool = open()
  const at = (name: string) => join(workdir, name)
  const call = (input: object): Promise<ToolOutcome> => tool.run(tool.input.parse(input), contextIn(workdir))
  return {
    workdir,
    server,
    at,
    call,
    get tool() {
      return tool
    },
    /** As after a restart of the server. */
    reopen: () => void (tool = open()),
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
